import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, lstatSync, openSync, readSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { ThroughlineError } from '../../core/errors.ts';

/* Archives, by the system's own tar, which handles links, permissions and long names. */

/** A directory, and its entries that go into the archive. */
export type Packed = readonly [directory: string, ...entries: string[]];

/**
 * Writes a new archive. Returns the warnings of tar, such as files that changed while they were read. Throws `refused` when there is no
 * tar.
 */
export async function pack(archive: string, parts: readonly Packed[], signal?: AbortSignal): Promise<string[]> {
  const from = parts.flatMap(([directory, ...entries]) => ['-C', directory, ...entries]);
  const sparse = (await knowsSparse(signal)) ? ['--sparse'] : [];
  const { code, said } = await tar([...sparse, '-cf', archive, ...from], signal);
  // GNU tar ends with 1 when files changed while it read them.
  if (code !== 0 && code !== 1) throw failed('write', archive, said);
  return code === 1 ? said.split('\n').filter(Boolean) : [];
}

/** What a folder with everything in it takes in an archive. */
export interface PackedSize {
  /** Bytes in the archive, about. */
  readonly bytes: number;
  /** What it would take if sparse files were written out. */
  readonly apparent: number;
  /** Files of which only the parts with content are stored, the largest first. */
  readonly sparse: readonly { readonly path: string; readonly size: number }[];
  /** Whether this tar leaves out the empty parts of sparse files. */
  readonly leavesOut: boolean;
}

/** How much the header of an entry takes, and the rest of its last block. */
const ENTRY = 1_024;
const BLOCK = 512;
/** Some file systems store small files in less space than their size, without any gap. */
const LEFT_OUT = 1_048_576;

/** Looks at a folder, and reads no file in it. Throws `refused` when there is no tar. */
export async function packedSize(folder: string, signal?: AbortSignal): Promise<PackedSize> {
  const leavesOut = await knowsSparse(signal);
  const sparse: { path: string; size: number }[] = [];
  const linked = new Set<string>();
  let [apparent, stored] = [0, 0];
  for (const folders = [folder]; folders.length > 0; ) {
    const at = folders.pop() as string;
    for (const entry of await readdir(at, { withFileTypes: true }).catch(noneIfGone)) {
      signal?.throwIfAborted();
      const path = join(at, entry.name);
      if (entry.isDirectory()) folders.push(path);
      const found = entry.isFile() ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
      apparent += ENTRY;
      stored += ENTRY;
      if (found === undefined || (found.nlink > 1 && linked.has(`${found.dev}:${found.ino}`))) continue;
      if (found.nlink > 1) linked.add(`${found.dev}:${found.ino}`);
      const content = found.blocks * BLOCK;
      apparent += found.size;
      stored += Math.min(found.size, content);
      if (found.size - content >= LEFT_OUT) sparse.push({ path: relative(folder, path), size: found.size });
    }
  }
  sparse.sort((a, b) => b.size - a.size);
  return { bytes: leavesOut ? stored : apparent, apparent, sparse, leavesOut };
}

/** Agents may delete files meanwhile. */
function noneIfGone(error: NodeJS.ErrnoException): never[] {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
  throw error;
}

/** GNU tar does; others fail for the option. */
async function knowsSparse(signal?: AbortSignal): Promise<boolean> {
  return (await tar(['--version'], signal)).printed.includes('GNU tar');
}

/** Extracts entries (and what is below them) into a directory. Nothing is written outside of it. */
export async function unpack(archive: string, directory: string, entries: readonly string[]): Promise<void> {
  const { code, said } = await tar(['-xf', archive, '-C', directory, '--no-same-owner', ...entries]);
  if (code !== 0) throw failed('read', archive, said);
}

const SQLITE = 'SQLite format 3\0';
const TAR = 'ustar';
const TAR_AT = 257;

/** What a backup file is, by its first bytes; null: neither. */
export function kindOf(file: string): 'database' | 'archive' | null {
  const handle = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(512);
    const start = bytes.toString('latin1', 0, readSync(handle, bytes, 0, bytes.length, 0));
    if (start.startsWith(SQLITE)) return 'database';
    return start.startsWith(TAR, TAR_AT) ? 'archive' : null;
  } finally {
    closeSync(handle);
  }
}

interface Ended {
  readonly code: number | null;
  readonly printed: string;
  readonly said: string;
}

async function tar(args: readonly string[], signal?: AbortSignal): Promise<Ended> {
  const child = spawn('tar', args, { stdio: ['ignore', 'pipe', 'pipe'], ...(signal && { signal }) });
  try {
    const [printed, said, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { code, printed, said: said.trim() };
  } catch (cause) {
    if (signal?.aborted) throw new ThroughlineError('cancelled', 'The backup was cancelled.', { cause });
    throw new ThroughlineError('refused', 'Cannot start "tar", which packs the sandboxes.', {
      hint: 'Install tar, or make the backup without --sandboxes.',
      cause,
    });
  }
}

function failed(what: string, archive: string, said: string): ThroughlineError {
  const full = /no space left|quota exceeded/i.test(said);
  return new ThroughlineError(full ? 'storage_full' : 'refused', `tar could not ${what} ${archive}: ${said}`, {
    hint: full ? 'Free some space, and try again.' : 'See what tar says.',
  });
}
