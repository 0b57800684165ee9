import { lstat, mkdir, readFile, realpath, rm } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { bounded, type Changes, untrackedFile } from '../../core/changes.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { branchOf } from '../../core/sandbox/sandbox-id.ts';
import { type Git, GitFailed, type Printed, type Repository, SAFE_ENV } from '../shared/compare.ts';
import { isBelow } from '../shared/isolated/visible.ts';
import { localFolder } from '../shared/local-folder.ts';
import { refuseBorrowed, run, withOwnGit } from './git.ts';

/*
 * The working directory of a conversation as a worktree of a git repository, on a branch of its own. A file beside it says what it belongs
 * to; isolated agents cannot write there. The file `.git` in the worktree is not trusted.
 *
 * We run git in the repository itself only to create the worktree, without its files, and to read and move references. None of this runs
 * programs that the settings of the repository name, and hooks are switched off. A git directory of our own writes the files (git.ts).
 */

export interface Worktree {
  /** Its files. */
  readonly tree: string;
  /** Its own git directory: a folder in `common`. */
  readonly admin: string;
  /** The git directory that all worktrees of the repository share. */
  readonly common: string;
  /** The git directory and the files of the worktree that the caller named. Commits are merged there. */
  readonly from: string;
  readonly top: string;
  /** The path below `tree` where the agent works: that of the caller's directory below `top`. */
  readonly prefix: string;
  readonly branch: string;
}

/** How a kind of sandbox uses worktrees. */
export interface TreeUse {
  /** Agents see only a part of this machine. Nothing that one of them has written into a repository may show them more. */
  readonly isolated: boolean;
  /** What differs in its files from its last commit. */
  readonly compare: (worktree: Worktree) => Promise<Changes>;
}

/** Writing the files of a large repository takes a while. */
export const WORK_MS = 120_000;
const NOTE = 'worktree.json';

const making = new Map<string, Promise<Worktree>>();

/**
 * Finds the worktree of a sandbox, or creates it from the last commit of the repository that `cwd` is in. A deleted one is created again
 * from its branch. Only the holder of its conversation opens it, so no other process creates it at the same time.
 */
export async function openWorktree(folder: string, id: string, cwd: string, use: TreeUse): Promise<Worktree> {
  const known = await knownWorktree(folder);
  if (known !== null && (await isThere(known.tree))) return known;
  const made = making.get(folder) ?? makeWorktree(folder, id, cwd, use).finally(() => making.delete(folder));
  making.set(folder, made);
  return made;
}

/** Null: it was not created yet. Throws `refused` for a copy. */
export async function knownWorktree(folder: string): Promise<Worktree | null> {
  const text = await readFile(join(folder, NOTE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
  if (text === null) return null;
  const noted: Worktree = JSON.parse(text);
  const tree = join(await realpath(folder), 'work');
  return tree === noted.tree ? noted : movedWorktree(folder, noted, tree);
}

/** The sandboxes were moved, as with the data home: records the new path in git. Throws `refused` for a copy: git records only one path. */
async function movedWorktree(folder: string, noted: Worktree, tree: string): Promise<Worktree> {
  const [was, is] = await Promise.all([identityOf(noted.tree), identityOf(tree)]);
  if (is !== null && is === was) return noted;
  if (is !== null && was !== null) {
    throw new ThroughlineError('refused', `${tree} is a copy of the worktree ${noted.tree}.`, {
      hint: 'Work in the original, or fork the conversation. If the original is not needed any more, delete it: then this copy replaces it.',
    });
  }
  const worktree = { ...noted, tree };
  if (is === null || !(await isThere(noted.admin))) return worktree;
  const file = join(relative(noted.common, noted.admin), 'gitdir');
  await localFolder(noted.common).replace(file, `${join(tree, '.git')}\n`);
  await localFolder(folder).replace(NOTE, JSON.stringify(worktree));
  return worktree;
}

/** Null: there is nothing. */
async function identityOf(path: string): Promise<string | null> {
  if (!(await isThere(path))) return null;
  const { dev, ino } = await lstat(path);
  return `${dev}:${ino}`;
}

type Named = Pick<Worktree, 'common' | 'from' | 'top' | 'prefix'> & { readonly head: string };

/** The repository of a directory that the caller named. Throws `refused` when no worktree of it can be created. */
export async function repositoryAt(
  cwd: string,
  { isolated }: Pick<TreeUse, 'isolated'>,
  signal = AbortSignal.timeout(WORK_MS),
): Promise<Named> {
  const git = (...args: string[]) => run(['-c', 'safe.directory=*', 'rev-parse', ...args], cwd, SAFE_ENV, signal);
  const refuse = (why: string, hint: string) => new ThroughlineError('refused', `${cwd} ${why}.`, { hint });
  const asked = ['--path-format=absolute', '--git-common-dir', '--git-dir', '--show-toplevel', '--show-prefix'];
  const found = await git(...asked).catch((error: unknown) => {
    if (!(error instanceof GitFailed)) throw error;
    throw refuse('is not in a git repository with files', 'Name a directory of one, or leave out the worktree.');
  });
  const [gitDirectory = '', ownDirectory = '', files = '', prefix = ''] = found.text.split('\n');
  const head = await git('--verify', '--quiet', 'HEAD').catch((error: unknown) => {
    if (!(error instanceof GitFailed)) throw error;
    throw refuse('has no commit yet', 'Commit something there first: a worktree begins with the last commit.');
  });
  // Links are resolved now. A link that appears later is refused (`visible.ts`).
  const [common, from, top] = await Promise.all([gitDirectory, ownDirectory, files].map((path) => realpath(path)));
  const named = { common, from, top, prefix: prefix.replace(/\/$/, ''), head: head.text.trim() } as Named;
  const why = isBelow(await realpath(cwd), named.top) ? await whyNotOwn(named, isolated, signal) : OTHER_FILES;
  if (why !== null) throw refuse(`cannot have a worktree: ${why}`, 'Look at the git repository there.');
  if (isolated) await refuseBorrowed(join(named.common, 'objects'));
  return named;
}

const OTHER_FILES = 'the settings of the repository name other files (core.worktree)';

/**
 * Why the files and the git directory do not belong to each other; null: they do. An agent that works in a repository can make it name
 * those of another one. For isolated agents the git directory has to name its files as well: they cannot write to that of another repository.
 */
async function whyNotOwn(
  { from, top }: Pick<Worktree, 'from' | 'top'>,
  isolated: boolean,
  signal: AbortSignal,
): Promise<string | null> {
  const link = join(top, '.git');
  const elsewhere = `${link} does not lead to ${from}`;
  const found = await lstat(link).catch(() => null);
  if (found === null) return OTHER_FILES;
  if (!found.isFile()) {
    if ((await realpath(link)) !== from) return elsewhere;
    return isolated && found.isSymbolicLink() ? `${link} is a link` : null;
  }
  const to = (await readFile(link, 'utf8')).replace(/^gitdir: /, '').trim();
  if ((await realpath(resolve(top, to))) !== from) return elsewhere;
  if (!isolated) return null;
  // The first is for a linked worktree, the second for a submodule.
  const back = await readFile(join(from, 'gitdir'), 'utf8').catch(() => '');
  const env = { ...SAFE_ENV, GIT_DIR: from };
  const { text } = await run(['config', '--get', 'core.worktree'], from, env, signal).catch(emptyIfFailed);
  const named = [back === '' ? '' : dirname(back.trim()), text.trim()].filter(Boolean);
  const real = await Promise.all(named.map((path) => realpath(resolve(from, path)).catch(() => null)));
  return real.includes(top) ? null : `${from} does not name ${top} as its files`;
}

function emptyIfFailed(error: unknown): Printed {
  if (error instanceof GitFailed) return { text: '', isWhole: true };
  throw error;
}

async function makeWorktree(folder: string, id: string, cwd: string, use: TreeUse): Promise<Worktree> {
  const signal = AbortSignal.timeout(WORK_MS);
  const { head, ...named } = await repositoryAt(cwd, use, signal);
  const [tree, branch] = [join(await realpath(folder), 'work'), branchOf(id)];
  // Without our file beside it, it was never completed, and no agent has worked in it.
  await rm(tree, { recursive: true, force: true });
  const exists = (await commitOf(named.common, `refs/heads/${branch}`, signal)) !== null;
  const from = exists ? [tree, branch] : ['-b', branch, tree, head];
  await run(['-c', 'safe.directory=*', 'worktree', 'add', '--force', '--no-checkout', ...from], cwd, SAFE_ENV, signal);
  const admin = await realpath((await readFile(join(tree, '.git'), 'utf8')).replace(/^gitdir: /, '').trim());
  const worktree = { tree, admin, ...named, branch };
  await resetFiles(worktree, signal);
  await mkdir(join(tree, named.prefix), { recursive: true });
  await localFolder(folder).replace(NOTE, JSON.stringify(worktree));
  return worktree;
}

/** Writes all files of the last commit. Untracked files stay. */
export async function resetFiles(worktree: Worktree, signal: AbortSignal): Promise<void> {
  const repository = await repositoryOf(worktree, signal);
  await withOwnGit(repository, { cwd: worktree.tree, signal }, async (git, index) => {
    await git('read-tree', '--reset', '-u', repository.head ?? '');
    await replaceIndex(worktree.common, worktree.admin, index);
  });
}

/** Replaces the index of a git directory by ours. No link is followed: an agent may work in the repository itself. */
export async function replaceIndex(common: string, gitDirectory: string, index: string): Promise<void> {
  await localFolder(common).replace(join(relative(common, gitDirectory), 'index'), await readFile(index));
}

/** The worktree as a repository whose files are compared with its last commit. Reads nothing that an agent can write in the worktree. */
export async function repositoryOf({ tree, admin, common }: Worktree, signal: AbortSignal): Promise<Repository> {
  return {
    ...{ top: tree, objects: join(common, 'objects'), index: join(admin, 'index') },
    ...{ exclude: join(common, 'info', 'exclude'), head: await commitOf(admin, 'HEAD', signal) },
  };
}

/** Null: there is no such reference. Runs nothing. */
export async function commitOf(gitDirectory: string, name: string, signal: AbortSignal): Promise<string | null> {
  const env = { ...SAFE_ENV, GIT_DIR: gitDirectory };
  try {
    return (await run(['rev-parse', '--verify', '--quiet', `${name}^{commit}`], gitDirectory, env, signal)).text.trim();
  } catch (error) {
    if (error instanceof GitFailed) return null;
    throw error;
  }
}

export async function worktreeChanges(worktree: Worktree, { compare }: TreeUse): Promise<Changes> {
  const { tree: directory, branch } = worktree;
  if (!(await isThere(worktree.admin))) {
    throw new ThroughlineError(
      'refused',
      `The repository ${worktree.common} no longer has the worktree ${directory}.`,
      {
        hint: 'Save the files there that you need. If the repository was moved, move it back.',
      },
    );
  }
  const { head, files, more } = await compare(worktree);
  const foreign = (await inSubmodules(worktree)).map((path) => untrackedFile(`${path}/`, null));
  const unmerged = await unmergedIn(worktree);
  return { ...bounded(head, [...files, ...foreign], more), worktree: { directory, branch, unmerged } };
}

/** A worktree has no submodules. So files in the place of one are the agent's, and git ignores them. */
export async function inSubmodules(worktree: Worktree, signal = AbortSignal.timeout(WORK_MS)): Promise<string[]> {
  const repository = await repositoryOf(worktree, signal);
  const submodules = await withOwnGit(repository, { cwd: worktree.tree, signal }, submodulesIn);
  const folder = localFolder(worktree.tree);
  const found = await Promise.all(
    submodules.map(async (path) => {
      const kind = (await folder.stat(path))?.kind ?? null;
      return kind === null || (kind === 'folder' && (await folder.list(path))?.length === 0) ? [] : [path];
    }),
  );
  return found.flat();
}

/** The paths of the submodules in the index. Reads no file of the worktree. */
export async function submodulesIn(git: Git): Promise<string[]> {
  const { text, isWhole } = await git('ls-files', '--stage', '-z');
  if (!isWhole) throw new GitFailed('The repository has too many files.');
  return text.split('\0').flatMap((entry) => /^160000 [^\t]*\t(.+)$/s.exec(entry)?.[1] ?? []);
}

/** How many commits of the worktree are not merged into the one that the caller named. */
export async function unmergedIn(worktree: Worktree, signal = AbortSignal.timeout(WORK_MS)): Promise<number> {
  const repository = await repositoryOf(worktree, signal);
  const there = await commitOf(worktree.from, 'HEAD', signal);
  if (repository.head === null || there === null) return 0;
  const range = `${there}..${repository.head}`;
  return withOwnGit(repository, { cwd: worktree.tree, signal }, async (git) =>
    Number((await git('rev-list', '--count', range)).text),
  );
}

/** How many files are changed and not committed. */
export async function unsavedIn(worktree: Worktree, use: TreeUse): Promise<number> {
  if (!(await isThere(worktree.tree))) return 0;
  const { files, more } = await worktreeChanges(worktree, use);
  return files.length + more;
}

/** Removes the worktree from the repository, and its branch if that is merged. */
export async function forgetWorktree(worktree: Worktree): Promise<void> {
  const { admin, common, from, branch } = worktree;
  if (!(await isThere(admin))) return;
  const signal = AbortSignal.timeout(WORK_MS);
  const name = `refs/heads/${branch}`;
  const [head, unmerged] = [await commitOf(common, name, signal), await unmergedIn(worktree, signal)];
  const isMerged = unmerged === 0 && head !== null && head === (await commitOf(admin, 'HEAD', signal));
  await rm(worktree.tree, { recursive: true, force: true, maxRetries: 3 });
  await rm(admin, { recursive: true, force: true, maxRetries: 3 });
  if (isMerged) await run(['update-ref', '-d', name, head], from, { ...SAFE_ENV, GIT_DIR: from }, signal);
}

export async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}
