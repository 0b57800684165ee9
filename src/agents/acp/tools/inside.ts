import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';

/**
 * The path with its links resolved, if it is inside one of the roots. The file need not exist yet. Null: it is outside, or the path is
 * not absolute.
 */
export async function inside(path: string, roots: readonly string[]): Promise<string | null> {
  if (!isAbsolute(path) || path.includes('\0')) return null;
  const real = await resolved(path);
  return real !== null && (await isWithin(real, roots)) ? real : null;
}

/**
 * Opens a file inside one of the roots. `make`: makes the missing folders. Null: it is outside. Throws the system's errors.
 *
 * Between resolving a path and opening it, somebody may replace one of its folders by a link. So the folder is opened first and
 * checked again, and the file is opened from that open folder.
 */
export async function openInside(
  path: string,
  roots: readonly string[],
  flags: number,
  make: boolean,
): Promise<FileHandle | null> {
  const file = await inside(path, roots);
  if (file === null) return null;
  // The path is one of the roots itself, so it is no file. The system's error says so.
  if (!(await isWithin(dirname(file), roots))) return (await openFolder(file, roots, false))?.handle ?? null;
  const folder = await openFolder(dirname(file), roots, make);
  if (folder === null) return null;
  try {
    return await open(join(placeOf(folder), basename(file)), flags | constants.O_NOFOLLOW, 0o666);
  } finally {
    await folder.handle.close();
  }
}

interface Folder {
  readonly handle: FileHandle;
  readonly path: string;
}

async function openFolder(path: string, roots: readonly string[], make: boolean, from = path): Promise<Folder | null> {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const handle = await open(from, flags).catch((error: NodeJS.ErrnoException) => {
    if (make && error.code === 'ENOENT') return null;
    throw error;
  });
  if (handle === null) return makeFolder(path, roots);
  const folder = { handle, path };
  const real = await realpath(placeOf(folder)).catch(() => null);
  if (real !== null && (await isWithin(real, roots))) return folder;
  await handle.close();
  return null;
}

async function makeFolder(path: string, roots: readonly string[]): Promise<Folder | null> {
  const parent = await openFolder(dirname(path), roots, true);
  if (parent === null) return null;
  try {
    const place = join(placeOf(parent), basename(path));
    await mkdir(place).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    return await openFolder(path, roots, false, place);
  } finally {
    await parent.handle.close();
  }
}

/** A path to an open folder that nobody can redirect. Only Linux has one. */
function placeOf({ handle, path }: Folder): string {
  return process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path;
}

async function isWithin(path: string, roots: readonly string[]): Promise<boolean> {
  for (const root of roots) {
    const rootPath = await realpath(root).catch(() => null);
    if (rootPath === null) continue;
    const way = relative(rootPath, path);
    if (way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way))) return true;
  }
  return false;
}

/** Resolves links, also for a path that does not exist yet. Null: a link that leads nowhere or in a circle. */
async function resolved(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return null;
    const parent = dirname(path);
    const link = (await lstat(path).catch(() => null))?.isSymbolicLink();
    if (parent === path || link) return null;
    const real = await resolved(parent);
    return real === null ? null : join(real, basename(path));
  }
}
