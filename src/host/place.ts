import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { ThroughlineError } from '../core/errors.ts';

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

/** The file appears with its whole content or not at all, and only the first one to make it succeeds. */
function make(file: string): string {
  const draft = writeDraft(file, `${randomBytes(16).toString('hex')}\n`);
  try {
    linkSync(draft, file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EEXIST') claimWithoutLinks(file, readFileSync(draft, 'latin1'));
  } finally {
    rmSync(draft, { force: true });
  }
  const made = read(file);
  return made !== null && COMPLETE.test(made.text) ? made.text.trim() : repair(file);
}

/** Some file systems have no links. There the others may see the file before its content: `repair` waits for that. */
function claimWithoutLinks(file: string, content: string): void {
  try {
    writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
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
  renameSync(writeDraft(file, `${id}\n`), file);
  return id;
}

function writeDraft(file: string, content: string): string {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, content, { flag: 'wx', mode: 0o600 });
  return draft;
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
  const options = { cause, hint: 'set THROUGHLINE_HOME to a directory that can be written' };
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
