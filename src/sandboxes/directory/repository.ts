import { lstat, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';

/*
 * What a directory says of the git repository that it is in. Only its files `.git` and `HEAD` are read, and nothing is run. An agent may have
 * written them: what they say is shown, and decides nothing else.
 */

/** Git's own files that are read here are shorter. */
const MOST_BYTES = 4096;

interface GitDirectory {
  /** The directory with the entry `.git`. */
  readonly top: string;
  /** Where git keeps the state of these files. */
  readonly own: string;
  /** The repository's git directory if this is a linked worktree of it; null: it is none. */
  readonly linkedTo: string | null;
}

/** The git directory of the nearest repository above `path`, an absolute path; null: there is none. */
export async function gitDirectoryOf(path: string): Promise<GitDirectory | null> {
  const link = join(path, '.git');
  const found = await lstat(link).catch(() => null);
  if (found?.isFile()) {
    const text = await shortText(link);
    if (!text?.startsWith('gitdir: ')) return null;
    const own = resolve(path, text.slice('gitdir: '.length).trim());
    const isLinked = basename(dirname(own)) === 'worktrees';
    return { top: path, own, linkedTo: isLinked ? dirname(dirname(own)) : null };
  }
  // Other folders of this name are none of git's.
  if (found !== null && (await shortText(join(link, 'HEAD'))) !== null) return { top: path, own: link, linkedTo: null };
  return dirname(path) === path ? null : gitDirectoryOf(dirname(path));
}

/** The branch that is checked out there; null: none is, or it cannot be read. */
export async function branchAt(gitDirectory: string): Promise<string | null> {
  return (await shortText(join(gitDirectory, 'HEAD')))?.match(/^ref: refs\/heads\/(.+)$/m)?.[1] ?? null;
}

/** For a directory in a linked worktree: the same directory of its repository. For all others: the directory itself. */
export async function projectOf(path: string): Promise<string> {
  const found = await gitDirectoryOf(path);
  if (found === null || found.linkedTo === null) return path;
  const { linkedTo } = found;
  const repository = basename(linkedTo) === '.git' ? dirname(linkedTo) : linkedTo;
  return join(repository, relative(found.top, path));
}

/** Null: there is none, or it is none of git's. */
async function shortText(path: string): Promise<string | null> {
  try {
    const found = await stat(path);
    return found.isFile() && found.size <= MOST_BYTES ? await readFile(path, 'utf8') : null;
  } catch {
    return null;
  }
}
