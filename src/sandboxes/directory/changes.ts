import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Changes } from '../../core/changes.ts';
import { hasCode } from '../../core/errors.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { changesInside, comparedInside } from '../shared/changes-inside.ts';
import {
  compare,
  GitFailed,
  inTime,
  noRepository,
  type Repository,
  repositoryBy,
  SAFE_ENV,
} from '../shared/compare.ts';
import { isBelow } from '../shared/isolated/visible.ts';
import { localFolder } from '../shared/local-folder.ts';
import { refuseBorrowed, run, withOwnGit } from './git.ts';

const TIME_MS = 10_000;

/**
 * What differs below `directory` from the last commit. `within`: repositories that begin above it do not count. Throws `not_found` when
 * there is no repository, `timed_out` when it takes too long, and `refused` when git is missing or cannot read it.
 */
export async function changesIn(directory: string, within: string | null): Promise<Changes> {
  return compared(directory, (signal) => findRepository(directory, directory, within, signal));
}

/**
 * The same for an isolated agent: git runs in the sandbox. Otherwise the agent could make git read files that only we may read. A repository
 * that begins above a named directory is not in the sandbox: we find it outside, starting above the directory, and git then runs in a
 * sandbox that also shows the needed parts of the repository. `open`: opens the sandbox with more paths to read.
 */
export async function changesOfIsolated(
  open: (read: readonly string[]) => Promise<OpenSandbox>,
  cwd: string | null,
): Promise<Changes> {
  const sandbox = await open([]);
  const { work } = sandbox;
  try {
    return await changesInside(sandbox, { within: cwd === null });
  } catch (error) {
    const isMissing = hasCode(error, 'not_found');
    if (!isMissing || cwd === null || (await isSeen(sandbox, dirname(work)))) throw error;
  }
  const signal = AbortSignal.timeout(TIME_MS);
  const repository = await findRepository(work, dirname(work), null, signal);
  await refuseBorrowed(repository.objects);
  const { objects, index, exclude, top } = repository;
  const seen = await open([objects, index, exclude, ...(await rulesAbove(top, work))]);
  return comparedInside(seen, work, async () => repository);
}

/** The files above a directory that control what git ignores in it, and how git compares it. */
async function rulesAbove(top: string, directory: string): Promise<string[]> {
  const rules: string[] = [];
  for (let at = directory; at !== top && at !== dirname(at); ) {
    at = dirname(at);
    for (const path of ['.gitignore', '.gitattributes'].map((name) => join(at, name))) {
      const found = await lstat(path).catch(() => null);
      if (found?.isFile()) rules.push(path); // git follows no links here
    }
  }
  return rules;
}

async function isSeen(sandbox: OpenSandbox, path: string): Promise<boolean> {
  try {
    await sandbox.folder(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'refused')) return false;
    throw error;
  }
}

/** The same for a known repository. */
export async function compared(
  directory: string,
  find: (signal: AbortSignal) => Promise<Repository>,
): Promise<Changes> {
  return inTime(TIME_MS, async (signal) => {
    const repository = await find(signal);
    return withOwnGit(repository, { cwd: directory, signal }, (git) =>
      compare(git, repository.head, localFolder(directory), signal),
    );
  });
}

/** The repository of `directory`, searched from `start` upwards. */
async function findRepository(
  directory: string,
  start: string,
  within: string | null,
  signal: AbortSignal,
): Promise<Repository> {
  const env = { ...SAFE_ENV, ...(within !== null && { GIT_CEILING_DIRECTORIES: dirname(within) }) };
  const found = await repositoryBy((...args) => run(args, start, env, signal), start).catch((error: unknown) => {
    throw error instanceof GitFailed ? noRepository() : error;
  });
  // The settings of a repository can name any folder as its files (core.worktree).
  if (isBelow(directory, found.top)) return found;
  throw noRepository();
}
