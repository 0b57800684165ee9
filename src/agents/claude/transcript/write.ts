import { randomUUID } from 'node:crypto';
import { accessSync, constants, mkdirSync, statfsSync, unlinkSync, writeFileSync } from 'node:fs';
import { link, lstat, mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { jsonLine } from '../../../core/input/visible.ts';

/** What happened. An existing file is left as it is, and `detail` names it. */
export interface Put {
  /** `same`: the file exists with this content. `exists`: it has another content. `refused`: it is a link. */
  readonly result: 'written' | 'same' | 'exists' | 'refused' | 'unwritable';
  readonly detail: string;
}

/**
 * Writes a transcript where Claude will look for it: all of it or nothing, readable only by its owner, never over another file
 * and never through a link, which could lead out of the agent's home. Errors of the disk are returned, not thrown.
 *
 * Not synced to the disk: after a power cut the file may be short. The reader notices that, and the file can be written again.
 */
export async function putTranscript(file: string, content: string | Uint8Array): Promise<Put> {
  const dir = dirname(file);
  const temporary = join(dir, `.${basename(file)}.${randomUUID()}.tmp`);
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const path of [dirname(dir), dir, file]) {
      if (await isLink(path)) return { result: 'refused', detail: `${path} is a link` };
    }
    await writeFile(temporary, content, { flag: 'wx', mode: 0o600 });
    return await place(temporary, file, content);
  } catch (error) {
    return { result: 'unwritable', detail: String(error) };
  } finally {
    await rm(temporary, { force: true }).catch(() => {});
  }
}

/**
 * Checks that files can be written in a directory, which is created if it is missing. Null: they can; else why not. Called before
 * each turn: with a read-only config directory Claude answers as always, reports nothing, and keeps nothing.
 */
export function probeWritable(dir: string): string | null {
  return looksWritable(dir) ? null : tryToWrite(dir);
}

/** Where the directory is writable and the disk has much space, no trial is needed: it takes as long as all else before a prompt. */
function looksWritable(dir: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dir);
    accessSync(dir, constants.W_OK | constants.X_OK);
    return bavail * bsize > MUCH_SPACE_BYTES;
  } catch {
    return false;
  }
}

function tryToWrite(dir: string): string | null {
  const file = join(dir, `.probe.${randomUUID()}.tmp`);
  try {
    // Synchronous: four asynchronous calls would take longer.
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    writeFileSync(file, PROBE, { flag: 'wx', mode: 0o600 });
    return null;
  } catch (error) {
    return `cannot write to ${dir}, where Claude keeps its sessions (${reasonOf(error)})`;
  } finally {
    removeQuietly(file);
  }
}

/** Without the name of our temporary file, which would only confuse. */
function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/, \w+ '.*'$/, '');
}

function removeQuietly(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // it was never created, or the directory is not writable any more
  }
}

/** Adds a line to a transcript that no process has open. Null: done; else why not. Never through a link. */
export async function appendLine(file: string, entry: object): Promise<string | null> {
  try {
    await using handle = await open(
      file,
      constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    await handle.appendFile(`${jsonLine(entry)}\n`);
    return null;
  } catch (error) {
    return `cannot write to ${file}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const MUCH_SPACE_BYTES = 256 * 1024 * 1024;
/** More than a few bytes: a full disk may still have space for a name. */
const PROBE = new Uint8Array(8_192);

/** Links instead of renaming: a rename would replace a file that somebody else has just written. */
async function place(temporary: string, file: string, content: string | Uint8Array): Promise<Put> {
  try {
    await link(temporary, file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EEXIST' || (await exists(file))) return compared(file, content);
    // File systems without hard links (FAT, some network file systems).
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'ENOSYS') throw error;
    await rename(temporary, file);
  }
  return { result: 'written', detail: file };
}

async function compared(file: string, content: string | Uint8Array): Promise<Put> {
  if (await isLink(file)) return { result: 'refused', detail: `${file} is a link` };
  return (await holds(file, Buffer.from(content)))
    ? { result: 'same', detail: file }
    : { result: 'exists', detail: `${file} is another transcript` };
}

async function holds(file: string, content: Buffer): Promise<boolean> {
  // A pipe in its place must not block us.
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stats = await handle.stat();
  return stats.isFile() && stats.size === content.length && (await handle.readFile()).equals(content);
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isSymbolicLink() ?? false;
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null;
}
