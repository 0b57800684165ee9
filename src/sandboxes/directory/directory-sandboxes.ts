import { randomUUID } from 'node:crypto';
import { lstat, mkdir, realpath, rm, stat } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import type { ProcessIdentity } from '../../core/process.ts';
import type { OpenSandbox, Sandboxes } from '../../ports/sandbox.ts';
import { spawnInGroup } from './spawn.ts';

export interface DirectorySettings {
  /** The directory of all sandboxes; created when missing. */
  readonly root: string;
  readonly place: string;
  /** The data home, for people; left out: the root. */
  readonly home?: string;
  /** Distinguishes a process from a later one with the same pid. */
  readonly identify: (pid: number) => ProcessIdentity | null;
  /** Ends every process that has the mark in its environment. Left out: only process groups are ended. */
  readonly endMarked?: (mark: string) => Promise<void>;
  readonly endMarkedNow?: (mark: string) => void;
  /** Makes the marks of programs. Left out: they do not say who started them. */
  readonly newMark?: () => string;
}

/**
 * Sandboxes that are plain directories, `root/<id>/{work,state}`: separate, not isolated. A program in one can do what we can.
 * The path is made from the id alone, so no path that an agent reports or a caller repeats ends up in it.
 */
export function directorySandboxes(settings: DirectorySettings): Sandboxes {
  const { root, place, home = root, identify, newMark = randomUUID } = settings;
  const { endMarked = async () => {}, endMarkedNow = () => {} } = settings;
  return {
    place,
    home,
    async open(id, { cwd }) {
      const folder = join(root, checkedId(id));
      const state = await directory(join(folder, 'state'));
      const work = cwd === null ? await directory(join(folder, 'work')) : await named(cwd);
      const sandbox: OpenSandbox = {
        id,
        work,
        state,
        spawn: (command, options) => {
          const how = { identify, endMarked, endMarkedNow, newMark };
          return spawnInGroup(command, { cwd: work, env: options.env, ...how });
        },
      };
      return sandbox;
    },
    async find(id) {
      const home = join(root, checkedId(id));
      return (await exists(home)) ? join(await realpath(root), id) : null;
    },
    async remove(id) {
      const home = join(root, checkedId(id));
      try {
        await rm(home, { recursive: true, force: true, maxRetries: 3 });
      } catch (cause) {
        const why = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
        throw new ThroughlineError('refused', `Cannot delete all of ${home} (${why}).`, {
          hint: 'Delete the rest by hand. "throughline doctor" lists it until then.',
          cause,
        });
      }
    },
    checkDirectory: (path) => named(resolve(path)),
  };
}

/** Also as a broken link. */
async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}

function checkedId(id: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(id)) return id;
  throw new ThroughlineError('refused', `${JSON.stringify(id)} is not a valid sandbox id.`, {
    hint: 'Use 1 to 64 letters, digits, "-" and "_".',
  });
}

/** Creates the directory, or keeps an existing one or a link to one. Returns its real path. */
async function directory(path: string): Promise<string> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    return await realpath(path);
  } catch (error) {
    throw unusable(path, error);
  }
}

function unusable(path: string, cause: unknown): ThroughlineError {
  const { code = '', message } = cause as NodeJS.ErrnoException;
  const cannot = `Cannot create the sandbox directory ${path}`;
  if (['ENOSPC', 'EDQUOT'].includes(code)) {
    return new ThroughlineError('storage_full', `${cannot}: the disk is full.`, { cause });
  }
  if (['EACCES', 'EPERM', 'EROFS'].includes(code)) {
    return new ThroughlineError('storage_readonly', `${cannot}: permission denied.`, { cause });
  }
  if (['EEXIST', 'ENOTDIR', 'ENOENT', 'ELOOP'].includes(code)) {
    const hint = 'Move the file or broken link that has its name, or the name of a directory above it.';
    return new ThroughlineError('refused', `${cannot}: something else has its name.`, { hint, cause });
  }
  return new ThroughlineError('refused', `Cannot use the sandbox directory ${path}: ${message}`, { cause });
}

/** The directory that the caller named: used as it is, never created. */
async function named(cwd: string): Promise<string> {
  const refuse = (why: string, hint: string) =>
    new ThroughlineError('refused', `The working directory ${cwd} ${why}.`, { hint });
  // A relative path would depend on the working directory of the process that happens to run the turn.
  if (!isAbsolute(cwd)) throw refuse('is not an absolute path', 'Give the whole path.');
  try {
    const resolved = await realpath(cwd);
    if (!(await stat(resolved)).isDirectory()) throw refuse('is not a directory', 'Name a directory.');
    return resolved;
  } catch (error) {
    if (error instanceof ThroughlineError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR')
      throw refuse('does not exist', 'Create it first, or leave it out to work in a directory of its own.');
    throw refuse(`cannot be used (${code})`, 'Check its permissions, or name another directory.');
  }
}
