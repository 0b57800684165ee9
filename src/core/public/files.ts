/* Files in the directory of a conversation, to be named in a prompt. Pure: which folders are looked into, and which files are listed. */

/**
 * Files and folders in the directory of a conversation, those that fit best first.
 *
 * @example
 * const { paths, more } = await chat.files({ match: 'readme' });
 * console.log(paths.join('\n'), more ? '…' : '');
 */
export interface Files {
  /** Below the directory, with slashes. A folder ends with one. */
  readonly paths: readonly string[];
  /** More files fit, or not all folders were looked into. */
  readonly more: boolean;
}

/** So many are listed. */
export const MOST_PATHS = 100;

/** What tools keep there, and nobody means who names a file. */
const LEFT_OUT: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', 'node_modules', '.venv', '__pycache__']);

/** Whether a folder (`path` ends with a slash) is looked into. One that is left out is, when `match` names it. */
export function isLookedInto(path: string, match: string): boolean {
  const name = path.split('/').at(-2) ?? '';
  return !LEFT_OUT.has(name) || match.toLowerCase().includes(`${name}/`);
}

/** How well a path fits, smaller is better: its name begins so, its name has it, its folders have it. Null: it does not. */
export function fitOf(path: string, match: string): number | null {
  const [whole, wanted] = [path.toLowerCase(), match.toLowerCase()];
  const at = whole.lastIndexOf(wanted);
  if (at === -1) return null;
  const name = whole.lastIndexOf('/', whole.length - 2) + 1;
  if (whole.startsWith(wanted, name)) return 0;
  return at > name ? 1 : 2;
}

/** Those that fit best. Of equal ones, those in fewer folders come first, then by name. */
export function bestFiles(all: readonly string[], match: string, isWhole: boolean): Files {
  const fitting = all.flatMap((path) => {
    const rank = fitOf(path, match);
    return rank === null ? [] : [{ path, rank, depth: path.split('/').length }];
  });
  fitting.sort((a, b) => a.rank - b.rank || a.depth - b.depth || (a.path < b.path ? -1 : 1));
  const paths = fitting.slice(0, MOST_PATHS).map(({ path }) => path);
  return { paths, more: !isWhole || fitting.length > paths.length };
}
