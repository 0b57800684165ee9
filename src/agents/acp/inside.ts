import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';

/**
 * The file or directory that a path really means, its links resolved, if it lies in one of the roots; it need not be there yet.
 * Null: it lies elsewhere, or is no whole path.
 */
export async function inside(path: string, roots: readonly string[]): Promise<string | null> {
  if (!isAbsolute(path) || path.includes('\0')) return null;
  const real = await resolved(path);
  if (real === null) return null;
  for (const root of roots) {
    const rootPath = await realpath(root).catch(() => null);
    if (rootPath !== null && within(real, rootPath)) return real;
  }
  return null;
}

/** Of what is not there, the nearest folder that is. Null: a link that leads nowhere, or in a circle. */
async function resolved(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') return null;
    const parent = dirname(path);
    if (parent === path || (await isLink(path))) return null;
    const real = await resolved(parent);
    return real === null ? null : join(real, basename(path));
  }
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isSymbolicLink() ?? false;
}

function within(path: string, root: string): boolean {
  const way = relative(root, path);
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way));
}
