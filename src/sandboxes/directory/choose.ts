import { lstat, opendir, readlink, realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import type { ChosenRepository, Directories, DirectoryEntry } from '../../core/public/files.ts';
import type { Worktrees } from '../../ports/sandbox.ts';
import { isBelow } from '../shared/isolated/visible.ts';
import { branchAt, gitDirectoryOf } from './repository.ts';

/*
 * The directories that a person may choose for a conversation: those below roots that the settings name. Nothing outside of these is
 * looked at, also not through a link.
 */

const MOST_READ = 100_000;
const MOST_LISTED = 1_000;

interface Asked {
  /** Absolute, or "~" with what follows; null: the first root. */
  readonly path: string | null;
  readonly hidden: boolean;
}

/** Throws `refused`. `roots`: absolute paths. */
export async function directoriesBelow(
  roots: readonly string[],
  worktrees: Worktrees,
  { path, hidden }: Asked,
): Promise<Directories> {
  const real = await realRoots(roots);
  const [first] = real;
  if (first === undefined) {
    throw new ThroughlineError('refused', 'No directories can be chosen here.', {
      hint: 'Name those below which one may choose in the setting "sandbox.directories".',
    });
  }
  const asked = path === null ? first : await chosen(path, [...roots, ...real], real);
  const { names, more } = await namesIn(asked, hidden);
  const entries = await Promise.all(names.slice(0, MOST_LISTED).map((name) => entryAt(asked, name, real)));
  return {
    path: asked,
    above: real.includes(asked) ? null : dirname(asked),
    roots: real,
    home: homedir(),
    repository: await repositoryOf(asked, real, worktrees),
    directories: entries.filter((one) => one !== null),
    more: more || names.length > MOST_LISTED,
  };
}

/** Without those that are not there. */
async function realRoots(roots: readonly string[]): Promise<string[]> {
  const found = await Promise.all(roots.map((root) => realpath(root).catch(() => null)));
  return [...new Set(found.filter((root) => root !== null))];
}

/** Its real path. A path outside is refused before it is looked at, so that the answer does not tell whether it exists. */
async function chosen(path: string, named: readonly string[], roots: readonly string[]): Promise<string> {
  const whole = resolve(path.replace(/^~(?=\/|$)/, () => homedir()));
  if (!named.some((root) => isBelow(whole, root))) throw outside(whole, roots);
  try {
    const real = await realpath(whole);
    if (!roots.some((root) => isBelow(real, root))) throw outside(whole, roots);
    if (!(await stat(real)).isDirectory()) throw unusable(whole, 'it is not a directory');
    return real;
  } catch (error) {
    if (error instanceof ThroughlineError) throw error;
    throw unusable(whole, whyNot(error), error);
  }
}

function outside(path: string, roots: readonly string[]): ThroughlineError {
  return new ThroughlineError('refused', `${path} is not below ${roots.join(' or ')}: it cannot be chosen here.`, {
    hint: 'The setting "sandbox.directories" names the directories below which one may choose.',
  });
}

function unusable(path: string, why: string, cause?: unknown): ThroughlineError {
  return new ThroughlineError('refused', `Cannot list ${path}: ${why}.`, { hint: 'Choose another directory.', cause });
}

function whyNot(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such directory';
  return code === 'EACCES' || code === 'EPERM' ? 'permission denied' : (code ?? message);
}

/** The names of directories and links, sorted. `more`: not all entries were read. */
async function namesIn(path: string, hidden: boolean): Promise<{ names: string[]; more: boolean }> {
  const names: string[] = [];
  let read = 0;
  try {
    for await (const entry of await opendir(path, { bufferSize: 1_024 })) {
      read += 1;
      if (read > MOST_READ) break;
      const shows = hidden || !entry.name.startsWith('.');
      if (shows && (entry.isDirectory() || entry.isSymbolicLink())) names.push(entry.name);
    }
  } catch (error) {
    throw unusable(path, whyNot(error), error);
  }
  return { names: names.sort(new Intl.Collator('en', { numeric: true }).compare), more: read > MOST_READ };
}

/** Null: it is gone, or a link to something that is no directory below a root. */
async function entryAt(above: string, name: string, roots: readonly string[]): Promise<DirectoryEntry | null> {
  const path = join(above, name);
  const link = await readlink(path).catch(() => null);
  const real = link === null ? path : await realpath(path).catch(() => null);
  if (real === null) return null;
  const isOutside = !roots.some((root) => isBelow(real, root));
  if (isOutside) return { name, path, link, outside: true, repository: false };
  if (link !== null && !(await stat(real).catch(() => null))?.isDirectory()) return null;
  const repository = (await lstat(join(real, '.git')).catch(() => null)) !== null;
  return { name, path, link, outside: false, repository };
}

/** Null: it is in none below a root. */
async function repositoryOf(
  path: string,
  roots: readonly string[],
  worktrees: Worktrees,
): Promise<ChosenRepository | null> {
  const found = await gitDirectoryOf(path);
  if (found === null || !roots.some((root) => isBelow(found.top, root))) return null;
  const noWorktree = await worktrees.check(path).then(
    () => null,
    (error: unknown) => {
      if (error instanceof ThroughlineError) return error.message;
      throw error;
    },
  );
  return { path: found.top, branch: await branchAt(found.own), noWorktree };
}
