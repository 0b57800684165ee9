import { lstatSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { createDirectories } from '../../core/directories.ts';
import { ThroughlineError, writeFault } from '../../core/errors.ts';
import type { Files } from '../../core/public/files.ts';
import { checkedId, isWorktree, PROBE } from '../../core/sandbox/sandbox-id.ts';
import type { HostProcesses } from '../../ports/processes.ts';
import type { NamedDirectory, OpenSandbox, Sandboxes } from '../../ports/sandbox.ts';
import { comparedInside } from '../shared/changes-inside.ts';
import { noWorkYet } from '../shared/compare.ts';
import { directoryMissing, filesIn } from '../shared/files.ts';
import { asSeen, isBelow, realIfThere } from '../shared/isolated/visible.ts';
import { localFolder } from '../shared/local-folder.ts';
import { type LocalSandboxSettings, localProcesses, localSandbox } from '../shared/local-sandbox.ts';
import { changesIn, changesOfIsolated, compared } from './changes.ts';
import { directoriesBelow } from './choose.ts';
import { projectOf } from './repository.ts';
import { isThere as exists, repositoryOf, type TreeUse, type Worktree, worktreeChanges } from './worktree.ts';
import { knownIn, openedWorktree, openWorktreeIn, removeUnlessUnsaved, worktreesAt } from './worktrees.ts';

export interface DirectorySettings {
  /** The directory of all sandboxes; created when missing. */
  readonly root: string;
  readonly place: string;
  /** The data home, for people; left out: the root. */
  readonly home?: string;
  readonly processes: HostProcesses;
  /** Whether a conversation with a directory in a git repository works in a worktree of it by default. Left out: no. */
  readonly worktree?: boolean;
  /** Below which a person may choose directories for conversations. Left out: nowhere. */
  readonly choosable?: readonly string[];
  /** How programs run in these directories. Left out: not isolated. */
  readonly isolate?: (sandbox: LocalSandboxSettings) => Promise<OpenSandbox>;
  /** How programs are found and ended. Left out: as processes of this machine. */
  readonly started?: Pick<Sandboxes, 'status' | 'end' | 'orphans'>;
}

/**
 * Sandboxes that are plain directories, `root/<id>/{work,state}`. Without `isolate` they are separate, but not isolated: a program in one
 * can do what we can. The path is made from the id alone, never from a path of an agent or a caller.
 */
export function directorySandboxes(settings: DirectorySettings): Sandboxes {
  const { root, place, home = root, processes, isolate = async (local) => localSandbox(local) } = settings;
  const { choosable = [] } = settings;
  const trees = treeUse(settings);
  const worktrees = worktreesAt((id) => join(root, checkedId(id)), settings.worktree ?? false, trees);
  const openAt = async (id: string, folder: string, cwd: string | null, read: readonly string[] = []) => {
    const state = directory(join(folder, 'state'));
    if (isWorktree(id)) {
      return isolate({ id, folder, ...(await openWorktreeIn(folder, id, cwd, trees)), state, processes });
    }
    const work = cwd === null ? directory(join(folder, 'work')) : await named(cwd);
    return isolate({ id, folder, work, state, around: { write: [], read, fixed: [] }, processes });
  };
  const open: Sandboxes['open'] = async (id, { cwd }) =>
    openAt(id, join(root, checkedId(id)), settings.isolate ? await withoutLinks(cwd) : cwd);
  return {
    place,
    home,
    open,
    async probe({ cwd } = { cwd: null }) {
      const folder = await emptyFolder(root);
      const remove = () => rm(folder, { recursive: true, force: true, maxRetries: 3 });
      try {
        return { ...(await openAt('probe', folder, cwd)), [Symbol.asyncDispose]: remove };
      } catch (error) {
        await remove();
        throw error;
      }
    },
    ...(settings.started ?? localProcesses(processes)),
    list: async () => ({ root, ids: await idsIn(root) }),
    async find(id) {
      const there = lstatSync(join(root, checkedId(id)), { throwIfNoEntry: false });
      return there === undefined ? null : join(realpathSync.native(root), id);
    },
    worktrees,
    directories: (asked) => directoriesBelow(choosable, worktrees, asked),
    async changes(id, { cwd }) {
      if (isWorktree(id)) return worktreeChanges(await knownIn(join(root, checkedId(id)), trees), trees);
      const own = join(root, checkedId(id), 'work');
      if (cwd === null && !(await exists(own))) throw noWorkYet();
      if (settings.isolate) {
        const real = await withoutLinks(cwd);
        return changesOfIsolated((read) => openAt(id, join(root, id), real, read), real);
      }
      if (cwd !== null) return changesIn(await named(cwd), null);
      const work = await realpath(own);
      return changesIn(work, work);
    },
    files: (id, options) => filesOf(settings, checkedId(id), options),
    async remove(id, { discard = false } = {}) {
      const home = join(root, checkedId(id));
      if (isWorktree(id)) await removeUnlessUnsaved(home, discard, trees);
      await removeAll(home);
    },
    checkDirectory,
  };
}

async function idsIn(root: string): Promise<string[]> {
  const names = await readdir(root).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter((name) => !name.startsWith(PROBE));
}

/** For isolated agents, git compares the files inside of the sandbox. */
function treeUse({ isolate, processes }: DirectorySettings): TreeUse {
  if (isolate === undefined) {
    const compare = (worktree: Worktree) => compared(worktree.tree, (signal) => repositoryOf(worktree, signal));
    return { isolated: false, compare };
  }
  const compare = async (worktree: Worktree) => {
    const folder = dirname(worktree.tree);
    const state = directory(join(folder, 'state'));
    const sandbox = await isolate({ id: basename(folder), folder, ...openedWorktree(worktree), state, processes });
    return comparedInside(sandbox, worktree.tree, (_, signal) => repositoryOf(worktree, signal));
  };
  return { isolated: true, compare };
}

/** Agents follow instructions in files of their working directory and above it, so this one is in a folder where only we write. */
async function emptyFolder(root: string): Promise<string> {
  try {
    createDirectories(root, { statSync, mkdirSync });
    return await mkdtemp(join(root, PROBE));
  } catch (error) {
    throw unusable(root, error);
  }
}

async function filesOf(
  { root, home = root, isolate }: DirectorySettings,
  id: string,
  { cwd, match }: { cwd: string | null; match: string },
): Promise<Files> {
  const own = join(root, id, 'work');
  if (cwd === null || isWorktree(id)) {
    return (await exists(own)) ? filesIn(localFolder(await realpath(own)), match) : { paths: [], more: false };
  }
  const real = await realpath(cwd).catch((cause) => {
    throw directoryMissing(cwd, cause);
  });
  // Files that isolated agents do not see are not listed either.
  const unseen = isolate === undefined ? [] : [root, home].map(realIfThere);
  const folder = asSeen(localFolder(real), (path) => (unseen.some((one) => isBelow(path, one)) ? null : 'read'));
  return filesIn(folder, match);
}

/** Links are removed and never followed. */
async function removeAll(home: string): Promise<void> {
  try {
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
    throw new ThroughlineError('refused', `Cannot delete all of ${home} (${why}).`, {
      hint: 'Delete the rest by hand. "throughline doctor" lists it until then.',
      cause,
    });
  }
}

/**
 * Creates the directory, or keeps an existing one or a link to one. Returns its real path. Synchronous, because that is faster: it is on
 * the disk of the data home, where every commit writes as well.
 */
function directory(path: string): string {
  try {
    createDirectories(path, { statSync, mkdirSync });
    return realpathSync.native(path);
  } catch (error) {
    throw unusable(path, error);
  }
}

function unusable(path: string, cause: unknown): ThroughlineError {
  const { code = '', message } = cause as NodeJS.ErrnoException;
  const cannot = `Cannot create the sandbox directory ${path}`;
  if (['EACCES', 'EPERM'].includes(code)) {
    const hint = 'Make the directory above it writable for this user.';
    return new ThroughlineError('storage_readonly', `${cannot}: permission denied.`, { hint, cause });
  }
  if (['EEXIST', 'ENOTDIR', 'ENOENT', 'ELOOP'].includes(code)) {
    const hint = 'Move the file or broken link that has its name, or the name of a directory above it.';
    return new ThroughlineError('refused', `${cannot}: something else has its name.`, { hint, cause });
  }
  return (
    writeFault(path, cause) ??
    new ThroughlineError('refused', `Cannot use the sandbox directory ${path}: ${message}`, { cause })
  );
}

async function checkDirectory(given: string, base = '.'): Promise<NamedDirectory> {
  const path = resolve(base, given);
  const real = await named(path);
  return { path, real, project: await projectOf(real) };
}

/** Throws `refused` for a path through a link: an agent that works above it could have made it, to see what it leads to. */
async function withoutLinks(cwd: string | null): Promise<string | null> {
  const real = cwd === null ? null : await named(cwd);
  if (real === cwd) return cwd;
  throw new ThroughlineError(
    'refused',
    `The path of the working directory ${cwd} contains a symbolic link: it leads to ${real}.`,
    {
      hint: 'For isolated agents it has to be the directory itself. If you have moved it, fork the conversation into the new one.',
    },
  );
}

/** The directory that the caller named: used as it is, never created. */
async function named(cwd: string): Promise<string> {
  const refuse = (why: string, hint: string) =>
    new ThroughlineError('refused', `The working directory ${cwd} ${why}.`, { hint });
  // A relative path would depend on the working directory of the process that runs the turn.
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
