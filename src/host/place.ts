import { createHash, randomBytes } from 'node:crypto';
import { appendFileSync, closeSync, fstatSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createDirectories } from '../core/directories.ts';
import { ThroughlineError, writeFault } from '../core/errors.ts';
import { makeOnce, replaceWhole } from './whole-file.ts';

const COMPLETE = /^[0-9a-f]{32}\n$/;
const HALF_WRITTEN_WAIT_MS = 200;

/**
 * The id of this data home's place. Conversations whose files are on this machine are tied to it. Created once, and then the
 * same for every process. Throws `storage_readonly` or `storage_full` when it cannot be created.
 */
export function placeOf(home: string): string {
  const file = join(home, 'place');
  try {
    createDirectories(home, { statSync, mkdirSync });
    const found = read(file);
    if (found === null) return make(file);
    return COMPLETE.test(found.text) ? found.text.trim() : repair(file);
  } catch (error) {
    throw unusable(home, error);
  }
}

/** The id of the place that all data homes with this name in their settings share. */
export function sharedPlace(name: string): string {
  return createHash('sha256').update(`place ${name}`).digest('hex').slice(0, 32);
}

function make(file: string): string {
  makeOnce(file, `${randomBytes(16).toString('hex')}\n`);
  const made = read(file);
  return made !== null && COMPLETE.test(made.text) ? made.text.trim() : repair(file);
}

/**
 * A file without a complete id: another process is writing it, or ended halfway. The new id is computed from the broken file,
 * so that all processes that repair it at the same time agree on it.
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

/** Text and inode come from one open file, so they belong together even while the file is being replaced. */
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
  const options = { cause, hint: 'Name a directory that you can write to: with --home, or in THROUGHLINE_HOME.' };
  if (code === 'EACCES' || code === 'EPERM') {
    return new ThroughlineError('storage_readonly', `Cannot write to the data home ${home}.`, options);
  }
  if (code === 'ENOTDIR' || code === 'EEXIST' || code === 'EISDIR') {
    return new ThroughlineError(
      'refused',
      `Cannot use ${home} as the data home: something else has its name.`,
      options,
    );
  }
  return writeFault(home, cause) ?? cause;
}

const MOST_BOOTS = 200;

/**
 * The boots of machines on which a data home was used: a file with one line for each, with a hash of the machine. The result tells whether
 * a boot was one of this machine and is over: then all its processes are dead. Decision 0101 says why the id of a machine alone does not
 * show that.
 *
 * If the file cannot be written, this boot is unknown after the next one, and its leases have to expire.
 */
export function bootsOf(home: string, here: { boot: string; machine: () => string | null }): (boot: string) => boolean {
  const file = join(home, 'boots');
  let over: ReadonlySet<string> | undefined;
  noteBoot(file, here);
  return (boot) => {
    over ??= new Set(
      linesOf(file)
        .filter((line) => line.machine === hashed(here.machine()))
        .map((line) => line.boot),
    );
    return boot !== here.boot && over.has(boot);
  };
}

function noteBoot(file: string, { boot, machine }: { boot: string; machine: () => string | null }): void {
  const lines = linesOf(file);
  if (lines.some((line) => line.boot === boot)) return;
  const name = hashed(machine());
  if (name === null) return;
  unlessRefused(() => {
    if (lines.length < MOST_BOOTS) appendFileSync(file, lineOf({ machine: name, boot }), { mode: 0o600 });
    else replaceWhole(file, [...lines.slice(-MOST_BOOTS / 2), { machine: name, boot }].map(lineOf).join(''));
  });
}

/** The id of a machine is not written to the file: other programs may identify the machine by it. */
function hashed(machine: string | null): string | null {
  return machine && createHash('sha256').update(`throughline ${machine}`).digest('hex').slice(0, 32);
}

interface Line {
  readonly machine: string;
  readonly boot: string;
}

const lineOf = ({ machine, boot }: Line) => `${machine} ${boot}\n`;

function linesOf(file: string): Line[] {
  const text = unlessRefused(() => read(file)?.text) ?? '';
  return [...text.matchAll(/^([0-9a-f]{32}) (\S+)\n/gm)].map(([, machine = '', boot = '']) => ({ machine, boot }));
}

/** Undefined: the file system reports an error. */
function unlessRefused<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
    return undefined;
  }
}
