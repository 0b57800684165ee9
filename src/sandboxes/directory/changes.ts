import { dirname } from 'node:path';
import type { Changes } from '../../core/changes.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { changesInside } from '../shared/changes-inside.ts';
import { BARE, compare, GitFailed, inTime, noRepository, type Repository, repositoryBy } from '../shared/compare.ts';
import { isBelow } from '../shared/isolated/visible.ts';
import { localFolder } from '../shared/local-folder.ts';
import { run, withOwnGit } from './git.ts';

/** All of it together. */
const TIME_MS = 10_000;

/**
 * What differs below `directory` from the last commit. `within`: repositories that begin above it do not count. Throws `not_found` when
 * there is no repository, `timed_out` when it takes too long, and `refused` when git is missing or cannot read it.
 */
export async function changesIn(directory: string, within: string | null): Promise<Changes> {
  return compared(directory, (signal) => findRepository(directory, directory, within, signal));
}

/**
 * The same for an isolated agent. What it can write, git reads in the sandbox: otherwise the repository could name files that only we may
 * read. A repository that begins above a named directory is not in the sandbox; git reads it here, and asks nothing in the directory.
 */
export async function changesOfIsolated(sandbox: OpenSandbox, cwd: string | null): Promise<Changes> {
  const { work } = sandbox;
  try {
    return await changesInside(sandbox, { within: cwd === null });
  } catch (error) {
    const isMissing = error instanceof ThroughlineError && error.code === 'not_found';
    if (!isMissing || cwd === null || (await isSeen(sandbox, dirname(work)))) throw error;
    return compared(work, (signal) => findRepository(work, dirname(work), null, signal));
  }
}

async function isSeen(sandbox: OpenSandbox, path: string): Promise<boolean> {
  try {
    await sandbox.folder(path);
    return true;
  } catch (error) {
    if (error instanceof ThroughlineError && error.code === 'refused') return false;
    throw error;
  }
}

/** The same when it is known which repository it is. */
export async function compared(
  directory: string,
  find: (signal: AbortSignal) => Promise<Repository>,
): Promise<Changes> {
  return inTime(directory, TIME_MS, async (signal) => {
    const repository = await find(signal);
    return withOwnGit(repository, { cwd: directory, signal }, (git) =>
      compare(git, repository.head, localFolder(directory), signal),
    );
  });
}

/** The repository of `directory`, looked for from `start` upwards. */
async function findRepository(
  directory: string,
  start: string,
  within: string | null,
  signal: AbortSignal,
): Promise<Repository> {
  const env = { ...BARE, ...(within !== null && { GIT_CEILING_DIRECTORIES: dirname(within) }) };
  const found = await repositoryBy((...args) => run(args, start, env, signal), start).catch((error: unknown) => {
    throw error instanceof GitFailed ? noRepository(directory) : error;
  });
  // Its settings can name any folder as the one of its files (core.worktree).
  if (isBelow(directory, found.top)) return found;
  throw noRepository(directory);
}
