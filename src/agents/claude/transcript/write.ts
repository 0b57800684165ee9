import { randomUUID } from 'node:crypto';
import { accessSync, constants, mkdirSync, statfsSync, unlinkSync, writeFileSync } from 'node:fs';
import { type FileHandle, link, lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

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
export async function putTranscript(file: string, content: Iterable<string | Uint8Array>): Promise<Put> {
  const dir = dirname(file);
  const temporary = join(dir, `.${basename(file)}.${randomUUID()}.tmp`);
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const path of [dirname(dir), dir, file]) {
      if (await isLink(path)) return { result: 'refused', detail: `${path} is a link` };
    }
    await writeNew(temporary, content);
    return await place(temporary, file);
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
    await handle.appendFile(`${JSON.stringify(entry)}\n`);
    return null;
  } catch (error) {
    return `cannot write to ${file}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const MUCH_SPACE_BYTES = 256 * 1024 * 1024;
/** More than a few bytes: a full disk may still have space for a name. */
const PROBE = new Uint8Array(8_192);
const WRITE_BYTES = 256 * 1024;

async function writeNew(path: string, content: Iterable<string | Uint8Array>): Promise<void> {
  const handle = await open(path, 'wx', 0o600);
  try {
    for (const bytes of inPieces(content)) await writeAll(handle, bytes);
  } finally {
    await handle.close();
  }
}

/** One write for each line would cost more than making the line. */
function* inPieces(content: Iterable<string | Uint8Array>): Generator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  for (const piece of content) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    pieces.push(bytes);
    length += bytes.length;
    if (length < WRITE_BYTES) continue;
    yield Buffer.concat(pieces);
    pieces = [];
    length = 0;
  }
  if (length > 0) yield Buffer.concat(pieces);
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done);
    done += bytesWritten;
  }
}

/** Links instead of renaming: a rename would replace a file that somebody else has just written. */
async function place(temporary: string, file: string): Promise<Put> {
  try {
    await link(temporary, file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EEXIST' || (await exists(file))) return compared(temporary, file);
    // File systems without hard links (FAT, some network file systems).
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP' && code !== 'ENOSYS') throw error;
    await rename(temporary, file);
  }
  return { result: 'written', detail: file };
}

async function compared(temporary: string, file: string): Promise<Put> {
  if (await isLink(file)) return { result: 'refused', detail: `${file} is a link` };
  return (await sameContent(temporary, file))
    ? { result: 'same', detail: file }
    : { result: 'exists', detail: `${file} is another transcript` };
}

async function sameContent(one: string, other: string): Promise<boolean> {
  await using ours = await open(one);
  // A pipe in its place must not block us.
  await using theirs = await open(other, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const [{ size }, there] = await Promise.all([ours.stat(), theirs.stat()]);
  if (!there.isFile() || there.size !== size) return false;
  for (let at = 0; at < size; at += WRITE_BYTES) {
    const [left, right] = await Promise.all([pieceAt(ours, at), pieceAt(theirs, at)]);
    if (left.length === 0 || !left.equals(right)) return false;
  }
  return true;
}

async function pieceAt(handle: FileHandle, at: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(WRITE_BYTES);
  const { bytesRead } = await handle.read(buffer, 0, WRITE_BYTES, at);
  return buffer.subarray(0, bytesRead);
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isSymbolicLink() ?? false;
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null;
}
