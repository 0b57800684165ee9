import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Keep, type Kept, MOST_COMMITTED, type SizedFile, thoseBeyond } from '../../core/changes.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { quotedPath } from '../../core/input/visible.ts';
import { type Git, GitFailed, MOST_STAGED, SAFE_ENV, sizesOf } from '../shared/compare.ts';
import { localFolder } from '../shared/local-folder.ts';
import { run, withOwnGit } from './git.ts';
import {
  commitOf,
  inSubmodules,
  replaceIndex,
  repositoryOf,
  resetFiles,
  submodulesIn,
  type TreeUse,
  unmergedIn,
  WORK_MS,
  type Worktree,
  worktreeChanges,
} from './worktree.ts';

/** Commits all changes that are not too large, and merges the commits into the branch of the worktree that the caller named. */
export async function keepChanges(worktree: Worktree, { commit, merge = false }: Keep, use: TreeUse): Promise<Kept> {
  const signal = AbortSignal.timeout(WORK_MS);
  try {
    const leftOut = await tooLarge(worktree, signal);
    const committed = commit === undefined ? null : await commitAll(worktree, commit, leftOut, signal);
    const merged = merge ? await mergeAll(worktree, use, leftOut, signal) : null;
    return { commit: committed, merged, branch: worktree.branch, leftOut };
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ThroughlineError('timed_out', `Git needs more than ${WORK_MS / 1_000} seconds to keep the changes.`, {
      hint: 'See with "throughline changes KEY" what was done. Do the rest there with git itself.',
      cause: error,
    });
  }
}

/** The changed files that do not fit into a commit. Git would read all of them, and a sparse file may have any size. */
async function tooLarge(worktree: Worktree, signal: AbortSignal): Promise<SizedFile[]> {
  const repository = await repositoryOf(worktree, signal);
  const { tree: cwd } = worktree;
  return withOwnGit(repository, { cwd, signal, most: MOST_STAGED }, async (git) => {
    // Neither of them reads a file.
    const [changed, added] = [
      await git('diff-files', '--name-only', '--ignore-submodules=all', '-z'),
      await git('ls-files', '--others', '--exclude-standard', '-z'),
    ];
    if (!changed.isWhole || !added.isWhole) {
      throw new ThroughlineError('refused', 'The worktree has too many changed files.', {
        hint: 'Name folders of files that need no commit in .gitignore. Nothing was committed.',
      });
    }
    const paths = [changed, added].flatMap(({ text }) => text.split('\0').filter(Boolean));
    return thoseBeyond(MOST_COMMITTED, await sizesOf(localFolder(cwd), paths, signal));
  });
}

/** Discards what is not committed. Ignored files stay. */
export async function discardChanges(worktree: Worktree): Promise<void> {
  const signal = AbortSignal.timeout(WORK_MS);
  await resetFiles(worktree, signal);
  const repository = await repositoryOf(worktree, signal);
  await withOwnGit(repository, { cwd: worktree.tree, signal }, (git) => git('clean', '-ffdq'));
}

async function commitAll(
  worktree: Worktree,
  message: string,
  leftOut: readonly SizedFile[],
  signal: AbortSignal,
): Promise<string> {
  const { admin, common, tree: cwd } = worktree;
  const repository = await repositoryOf(worktree, signal);
  const head = repository.head ?? '';
  const env = await identity(worktree, signal);
  return withOwnGit(repository, { cwd, signal, env }, async (git, index) => {
    await addAll(git, worktree, leftOut, signal);
    await refuseFiltered(git, '--cached', head);
    const tree = lineOf(await git('write-tree'));
    if (tree === lineOf(await git('rev-parse', `${head}^{tree}`))) {
      if (leftOut.length > 0) throw tooLargeAlone(leftOut);
      throw new ThroughlineError('conflict', 'Nothing has changed since the last commit.');
    }
    const made = lineOf(await git('commit-tree', tree, '-p', head, '-m', message));
    await moveHead(admin, { to: made, from: head }, signal);
    await replaceIndex(common, admin, index);
    return made;
  });
}

async function mergeAll(
  worktree: Worktree,
  use: TreeUse,
  leftOut: readonly SizedFile[],
  signal: AbortSignal,
): Promise<string> {
  const { files, more } = await worktreeChanges(worktree, use);
  // What cannot be committed here must not prevent every merge.
  const others = files.filter(({ path }) => !leftOut.some((one) => one.path === path));
  if (others.length + more > 0) {
    throw new ThroughlineError('conflict', 'The worktree has changes that are not committed, so it cannot be merged.', {
      hint: 'Commit them, or discard them.',
    });
  }
  if ((await unmergedIn(worktree, signal)) === 0)
    throw new ThroughlineError('conflict', 'Everything is merged already.');
  const { from, common } = worktree;
  const there = await commitOf(from, 'HEAD', signal);
  const ours = await commitOf(worktree.admin, 'HEAD', signal);
  if (there === null || ours === null) throw new GitFailed(`${from} has no commit.`);
  const lock = localFolder(from);
  if ((await lock.put('index.lock', '')) !== 'written') {
    throw new ThroughlineError('conflict', `Another git process works in ${worktree.top}.`, {
      hint: `Try again when it has ended. If there is none, delete ${join(from, 'index.lock')}.`,
    });
  }
  try {
    const env = await identity(worktree, signal);
    const files = { top: worktree.top, objects: join(common, 'objects'), index: join(from, 'index') };
    const repository = { ...files, exclude: join(common, 'info', 'exclude'), head: there };
    return await withOwnGit(repository, { cwd: worktree.top, signal, env }, async (git, index) => {
      const merged = await mergeCommit(git, { there, ours, branch: worktree.branch });
      await refuseFiltered(git, there, merged);
      await git('read-tree', '-m', '-u', there, merged).catch((error: unknown) => {
        throw refused(
          error,
          `Changes in ${worktree.top} that are not committed prevent the merge.`,
          'Commit or stash them.',
        );
      });
      try {
        await moveHead(from, { to: merged, from: there }, signal);
      } catch (error) {
        await git('read-tree', '-m', '-u', merged, there);
        throw error;
      }
      await replaceIndex(common, from, index);
      return merged;
    });
  } finally {
    await lock.remove('index.lock');
  }
}

/** The commit that has both sides: a new one, or ours if it has theirs already. */
async function mergeCommit(git: Git, one: { there: string; ours: string; branch: string }): Promise<string> {
  const { there, ours, branch } = one;
  if (lineOf(await git('merge-base', there, ours)) === there) return ours;
  const tree = await git('merge-tree', '--write-tree', '--name-only', '--no-messages', there, ours).catch((error) => {
    const files = error instanceof GitFailed ? error.printed.trim().split('\n').slice(1) : [];
    const where = files.length === 0 ? '' : ` in ${files.join(', ')}`;
    throw refused(error, `The commits of both sides conflict${where}.`, `Merge by hand: "git merge ${branch}".`);
  });
  const message = `Merge branch '${branch}'`;
  return lineOf(await git('commit-tree', lineOf(tree), '-p', there, '-p', ours, '-m', message));
}

/** Moves it only from the commit that we have seen. */
async function moveHead(gitDirectory: string, { to, from }: { to: string; from: string }, signal: AbortSignal) {
  const env = { ...SAFE_ENV, ...NOBODY, GIT_DIR: gitDirectory };
  await run(['update-ref', '-m', 'throughline', 'HEAD', to, from], gitDirectory, env, signal).catch(
    (error: unknown) => {
      throw refused(error, 'The repository has a new commit meanwhile.', 'Look at the changes, and try again.');
    },
  );
}

/** Git records who moved a reference, and needs a name. */
const NOBODY = { GIT_COMMITTER_NAME: 'Throughline', GIT_COMMITTER_EMAIL: 'throughline@localhost' };

/**
 * Adds everything to our index. Throws `refused` for a repository in the worktree: git would store only the id of its commit, and its files
 * would be lost with the worktree. In the place of a submodule, git would also run programs that its settings name.
 */
async function addAll(git: Git, worktree: Worktree, leftOut: readonly SizedFile[], signal: AbortSignal): Promise<void> {
  const [foreign] = await inSubmodules(worktree, signal);
  if (foreign !== undefined) {
    throw new ThroughlineError(
      'refused',
      `${quotedPath(foreign)} in the worktree is the place of a submodule, and has files in it. They cannot be committed.`,
      { hint: `Move what is in ${quotedPath(foreign)} to another folder, or delete it. Nothing was committed.` },
    );
  }
  const before = new Set(await submodulesIn(git));
  if (leftOut.length > MOST_LEFT_OUT) throw tooLargeAlone(leftOut);
  const others = leftOut.map(({ path }) => `:(exclude,literal)${path}`);
  await git('--no-literal-pathspecs', 'add', '--all', '--', '.', ...others).catch((error: unknown) => {
    const hint = error instanceof Error ? error.message : '';
    throw refused(error, 'Git cannot add what is in the worktree.', hint);
  });
  const added = (await submodulesIn(git)).find((path) => !before.has(path));
  if (added === undefined) return;
  throw new ThroughlineError(
    'refused',
    `${quotedPath(added)} in the worktree is a git repository of its own, and cannot be committed.`,
    {
      hint: `Delete ${quotedPath(`${added}/.git`)} to commit its files, or name ${quotedPath(added)} in .gitignore. Nothing was committed.`,
    },
  );
}

/** So many paths can be arguments of a program, whatever their length. */
const MOST_LEFT_OUT = 100;

function tooLargeAlone([first, ...more]: readonly SizedFile[]): ThroughlineError {
  const others = more.length === 0 ? '' : ` and ${more.length} more`;
  const which = first === undefined ? '' : `${quotedPath(first.path)} (${(first.bytes / 1e9).toFixed(1)} GB)${others}`;
  const most = `A commit made here takes ${MOST_COMMITTED / 2 ** 30} GiB at most`;
  return new ThroughlineError('refused', `${most}, so these changes are not committed: ${which}.`, {
    hint: 'Delete them, name them in .gitignore, or commit them there with git itself. Nothing was committed.',
  });
}

/** Throws `refused` for files with a filter (Git LFS): filters are not run here, so their content would be wrong. */
async function refuseFiltered(git: Git, ...range: string[]): Promise<void> {
  const filtered = ['.', ':(exclude,attr:!filter)', ':(exclude,attr:-filter)'];
  const { text } = await git(
    '--no-literal-pathspecs',
    'diff',
    '--no-ext-diff',
    '--name-only',
    ...range,
    '--',
    ...filtered,
  );
  if (text === '') return;
  const [first = ''] = text.split('\n');
  throw new ThroughlineError(
    'refused',
    `A git filter (such as Git LFS) applies to ${first}, and filters are not run here.`,
    {
      hint: 'Commit and merge there with git itself.',
    },
  );
}

/** Who commits: the person's name and address in the settings of git. Only these two values are read. */
async function identity({ from }: Worktree, signal: AbortSignal): Promise<Record<string, string>> {
  const { GIT_CONFIG_GLOBAL: _, ...bare } = SAFE_ENV;
  const { HOME = homedir(), XDG_CONFIG_HOME } = process.env;
  const env = { ...bare, HOME, ...(XDG_CONFIG_HOME !== undefined && { XDG_CONFIG_HOME }), GIT_DIR: from };
  const value = async (name: string) => {
    const found = await run(['config', '--get', name], from, env, signal).catch((error: unknown) => {
      throw refused(
        error,
        `Git does not know who commits: "${name}" is not set.`,
        `Run "git config --global ${name} …".`,
      );
    });
    return lineOf(found);
  };
  const [name, email] = [await value('user.name'), await value('user.email')];
  return {
    ...{ GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email },
    ...{ GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email },
  };
}

function refused(error: unknown, message: string, hint: string): unknown {
  return error instanceof GitFailed ? new ThroughlineError('refused', message, { hint, cause: error }) : error;
}

const lineOf = ({ text }: { readonly text: string }) => text.trim();
