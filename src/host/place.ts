import { createHash, randomBytes } from 'node:crypto';
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ThroughlineError } from '../core/errors.ts';
import { makeOnce, replaceWhole } from './whole-file.ts';

const COMPLETE = /^[0-9a-f]{32}\n$/;
const HALF_WRITTEN_WAIT_MS = 200;

/**
 * The id of this data home's place: what conversations are tied to whose files lie on this machine. Made once and then the
 * same for every process that asks. Throws `storage_readonly` or `storage_full` when it cannot be made.
 */
export function placeOf(home: string): string {
  const file = join(home, 'place');
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const found = read(file);
    if (found === null) return make(file);
    return COMPLETE.test(found.text) ? found.text.trim() : repair(file);
  } catch (error) {
    throw unusable(home, error);
  }
}

function make(file: string): string {
  makeOnce(file, `${randomBytes(16).toString('hex')}\n`);
  const made = read(file);
  return made !== null && COMPLETE.test(made.text) ? made.text.trim() : repair(file);
}

/**
 * A file without a whole id: somebody is about to finish it, or ended halfway. The new id comes from the broken file itself,
 * so that any number of processes that repair it at once agree on it.
 */
function repair(file: string): string {
  for (const deadline = Date.now() + HALF_WRITTEN_WAIT_MS; Date.now() < deadline; pause(10)) {
    const now = read(file);
    if (now !== null && COMPLETE.test(now.text)) return now.text.trim();
  }
  const broken = read(file);
  if (broken === null) return make(file);
  if (COMPLETE.test(broken.text)) return broken.text.trim();
  const id = createHash('sha256').update(`${broken.made}\n${broken.text}`).digest('hex').slice(0, 32);
  replaceWhole(file, `${id}\n`);
  return id;
}

/** Text and inode come from one open file, so they belong together also while it is being replaced. */
function read(file: string): { text: string; made: string } | null {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const { ino, mtimeMs } = fstatSync(fd);
    return { text: readFileSync(fd, 'latin1'), made: `${ino} ${mtimeMs}` };
  } finally {
    closeSync(fd);
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function unusable(home: string, cause: unknown): unknown {
  const { code } = cause as NodeJS.ErrnoException;
  const options = { cause, hint: 'Set THROUGHLINE_HOME to a directory that can be written.' };
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new ThroughlineError('storage_full', `No room left in ${home}.`, { cause });
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    return new ThroughlineError('storage_readonly', `The data home ${home} cannot be written.`, options);
  }
  if (code === 'ENOTDIR' || code === 'EEXIST' || code === 'EISDIR') {
    return new ThroughlineError(
      'refused',
      `The data home ${home} is not a directory of ours: something is in the way.`,
      options,
    );
  }
  return cause;
}
