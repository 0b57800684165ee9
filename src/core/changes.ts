/* The changes in a directory since the last commit of its git repository. Pure: made from the output of git. */

import { ThroughlineError } from './errors.ts';
import { quotedPath } from './input/visible.ts';

/**
 * What an agent has changed in the directory of its conversation.
 *
 * @example
 * const { files } = await chat.changes();
 * for (const { path, change, added, removed } of files) console.log(change, path, added, removed);
 */
export interface Changes {
  /** The commit that the files are compared with; null: the repository has none yet. */
  readonly head: string | null;
  /** By path. */
  readonly files: readonly ChangedFile[];
  /** How many changed files are left out. */
  readonly more: number;
  /** Of a conversation that works in a worktree of its own. */
  readonly worktree?: {
    readonly directory: string;
    readonly branch: string;
    /** How many commits it has that the directory which the conversation was given does not have. */
    readonly unmerged: number;
  };
}

/**
 * What to do with the changes in a worktree.
 *
 * @example
 * await chat.keepChanges({ commit: 'Add a parser', merge: true });
 */
export interface Keep {
  /** Commits all changes, with this message. */
  readonly commit?: string | undefined;
  /** Merges the commits of the worktree into the branch that is checked out in the directory which the conversation was given. */
  readonly merge?: boolean | undefined;
}

/**
 * What was done with the changes in a worktree.
 *
 * @example
 * const { branch, merged } = await chat.keepChanges({ commit: 'Add a parser', merge: true });
 * console.log(branch, merged);
 */
export interface Kept {
  readonly branch: string;
  /** The commit that was made; null: none was asked for. */
  readonly commit: string | null;
  /** The commit that the directory of the conversation is at now; null: nothing was merged. */
  readonly merged: string | null;
  /** Changed files that are too large for a commit made here, the largest first. They stay in the worktree. */
  readonly leftOut: readonly SizedFile[];
}

/**
 * A file with its size. Of a sparse file, this is how much a program reads, not what it takes on the disk.
 *
 * @example
 * const { leftOut } = await chat.keepChanges({ commit: 'Add a parser' });
 * for (const { path, bytes } of leftOut) console.log(path, bytes);
 */
export interface SizedFile {
  /** Below the directory, with slashes. */
  readonly path: string;
  readonly bytes: number;
}

/**
 * A changed file.
 *
 * @example
 * import type { ChangedFile } from 'throughline';
 *
 * const line = ({ path, change, added, removed }: ChangedFile) => `${change} ${path} +${added ?? '?'} -${removed ?? '?'}`;
 */
export interface ChangedFile {
  /** Below the directory, with slashes. */
  readonly path: string;
  readonly change: (typeof CHANGE_KINDS)[number];
  /** Lines; null: the file is not text, or too large. */
  readonly added: number | null;
  readonly removed: number | null;
  /** As git prints it; null: the file is not text, or this patch or all together are too large. */
  readonly patch: string | null;
}

/** Throws `invalid` when there is nothing to do. */
export function checkKeep({ commit, merge = false }: Keep): Keep {
  if (commit !== undefined && (typeof commit !== 'string' || commit.trim() === ''))
    throw new ThroughlineError('invalid', 'The message of the commit is empty.');
  if (commit !== undefined) return { commit, merge };
  if (merge) return { merge };
  throw new ThroughlineError('invalid', 'Nothing to do: give "commit" a message, or set "merge".');
}

/** `retyped`: a file became a link, or the reverse. */
export const CHANGE_KINDS = ['added', 'modified', 'deleted', 'retyped', 'untracked'] as const;

/** The longest patch of one file, and of all files together. */
export const MOST_PATCH = 256 * 1_024;
export const MOST_PATCHES = 4 * 1_048_576;
export const MOST_FILES = 500;

/** How much of the files git reads to show their patches, and for one commit. Of more, it reads the smallest files. */
export const MOST_COMPARED = 64 * 1_048_576;
export const MOST_COMMITTED = 1_024 * 1_048_576;

/** The files that do not fit if the smallest come first. The largest first. */
export function thoseBeyond(most: number, files: readonly SizedFile[]): SizedFile[] {
  let left = most;
  const bySize = files.toSorted((a, b) => a.bytes - b.bytes);
  const fits = bySize.findIndex(({ bytes }) => {
    left -= bytes;
    return left < 0;
  });
  return fits === -1 ? [] : bySize.slice(fits).toReversed();
}

const KINDS: Readonly<Record<string, ChangedFile['change']>> = { A: 'added', D: 'deleted', T: 'retyped' };

/** Reads the output of `git diff --raw -z --no-renames`: `:MODE MODE HASH HASH STATUS`, NUL, PATH, NUL. */
export function rawEntries(raw: string): { readonly path: string; readonly change: ChangedFile['change'] }[] {
  const parts = raw.split('\0');
  const entries: { path: string; change: ChangedFile['change'] }[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const status = parts[at]?.split(' ').at(-1) ?? '';
    entries.push({ path: parts[at + 1] as string, change: KINDS[status] ?? 'modified' });
  }
  return entries;
}

/** Lines of a file never match: each has a sign before it. Only `\n` ends a line here; `^` would also match after other line ends. */
const HEADERS = /(?<=^|\n)(?=diff --git )/;

/**
 * The patches of these files, in their order, from the output of `git diff --patch`, which may be cut off at its end. A file that became
 * a link has two headers.
 */
export function patchesOf(entries: readonly { readonly change: ChangedFile['change'] }[], text: string): string[] {
  const parts = text.split(HEADERS);
  let at = 0;
  return entries.map(({ change }) => {
    const count = change === 'retyped' ? 2 : 1;
    at += count;
    return parts.slice(at - count, at).join('');
  });
}

/** `isWhole`: the patch was not cut off. */
export function changedFile(path: string, change: ChangedFile['change'], patch: string, isWhole: boolean): ChangedFile {
  let [added, removed, inHunk, isText] = [0, 0, false, !patch.includes('\0')];
  for (const line of patch.split('\n')) {
    // Before its first hunk, a file has headers, some of which begin with signs as well.
    if (line.startsWith('diff --git ')) inHunk = false;
    else if (line.startsWith('@@ ')) inHunk = true;
    else if (inHunk && line.startsWith('+')) added += 1;
    else if (inHunk && line.startsWith('-')) removed += 1;
    else if (!inHunk && line.startsWith('Binary files ')) isText = false;
  }
  const isShown = isWhole && isText && patch.length <= MOST_PATCH;
  return isShown ? { path, change, added, removed, patch } : { path, change, added: null, removed: null, patch: null };
}

/** A file that git does not track, shown as if it had been added. `text` null: it is not text, or too large. */
export function untrackedFile(path: string, text: string | null): ChangedFile {
  if (text === null || text.includes('\0')) {
    return { path, change: 'untracked', added: null, removed: null, patch: null };
  }
  const lines = text.split('\n');
  const isEnded = lines.at(-1) === '';
  if (isEnded) lines.pop();
  const body = lines.map((line) => `+${line}\n`).join('');
  const end = isEnded || lines.length === 0 ? '' : '\\ No newline at end of file\n';
  const [before, after] = [quotedPath(`a/${path}`), quotedPath(`b/${path}`)];
  const tab = path.includes(' ') ? '\t' : ''; // git ends a name with a space so
  const place = `@@ -0,0 +1,${lines.length} @@`;
  const hunk = lines.length === 0 ? '' : `--- /dev/null\n+++ ${after}${tab}\n${place}\n${body}${end}`;
  // Without a mode, "git apply" fails. Whether the file is a program is not known here.
  const patch = `diff --git ${before} ${after}\nnew file mode 100644\n${hunk}`;
  return { path, change: 'untracked', added: lines.length, removed: 0, patch };
}

/** Sorts the files by path, and leaves out files and patches beyond the limits. */
export function bounded(head: string | null, all: readonly ChangedFile[], more: number): Changes {
  let left = MOST_PATCHES;
  const files = all
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .slice(0, MOST_FILES)
    .map((file) => {
      left -= file.patch?.length ?? 0;
      return left < 0 ? { ...file, patch: null } : file;
    });
  return { head, files, more: more + all.length - files.length };
}
