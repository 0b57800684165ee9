import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readSync } from 'node:fs';
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
  const { code, said } = await tar(['-cf', archive, ...from], signal);
  // GNU tar ends with 1 when files changed while it read them.
  if (code !== 0 && code !== 1) throw failed('write', archive, said);
  return code === 1 ? said.split('\n').filter(Boolean) : [];
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

async function tar(args: readonly string[], signal?: AbortSignal): Promise<{ code: number | null; said: string }> {
  const child = spawn('tar', args, { stdio: ['ignore', 'ignore', 'pipe'], ...(signal && { signal }) });
  try {
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    return { code, said: said.trim() };
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
