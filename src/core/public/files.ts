/* Finds files in the directory of a conversation that a prompt can name. Pure: which folders are read, and which files are listed. */

/**
 * Files and folders in the directory of a conversation, the best matches first.
 *
 * @example
 * const { paths, more } = await chat.files({ match: 'readme' });
 * console.log(paths.join('\n'), more ? '…' : '');
 */
export interface Files {
  /** Below the directory, with slashes. A folder ends with one. */
  readonly paths: readonly string[];
  /** More files match, or not all folders were read. */
  readonly more: boolean;
}

/**
 * Directories that a person may choose for a conversation: those in one directory of the machine where conversations work.
 *
 * @example
 * const { directories } = await tl.directories({ path: '~/src' });
 * for (const { name, repository } of directories) console.log(name, repository ? 'git' : '');
 */
export interface Directories {
  /** The directory that these are in, links resolved. */
  readonly path: string;
  /** The directory above it; null: it is a root. */
  readonly above: string | null;
  /** Where one may choose: the setting `sandbox.directories`, links resolved. */
  readonly roots: readonly string[];
  /** The home of whoever runs the server. */
  readonly home: string;
  /** The git repository that `path` is in; null: it is in none. */
  readonly repository: ChosenRepository | null;
  /** By name, at most 1,000. */
  readonly directories: readonly DirectoryEntry[];
  /** There are others, or not all entries were read. */
  readonly more: boolean;
}

/**
 * The git repository of a directory that a person may choose.
 *
 * @example
 * const { repository } = await tl.directories({ path: '~/src/api' });
 * if (repository?.noWorktree === null) console.log(`a worktree can begin at ${repository.branch ?? 'the checked out commit'}`);
 */
export interface ChosenRepository {
  /** The directory of its files. */
  readonly path: string;
  /** The branch that is checked out there; null: none is. */
  readonly branch: string | null;
  /** Why a conversation cannot have a worktree of its own here; null: it can. */
  readonly noWorktree: string | null;
}

/**
 * One directory that a person may choose, or open.
 *
 * @example
 * const { directories } = await tl.directories({ path: '~/src' });
 * const open = directories.filter(({ outside }) => !outside).map(({ path }) => path);
 */
export interface DirectoryEntry {
  readonly name: string;
  readonly path: string;
  /** Where it leads, as it says itself; null: it is no link. */
  readonly link: string | null;
  /** It leads out of the roots, and cannot be listed or chosen. */
  readonly outside: boolean;
  /** Whether it is the directory of a git repository, or of a worktree. */
  readonly repository: boolean;
}

/** How many are listed. */
export const MOST_PATHS = 100;

/** Folders of tools, whose files a prompt rarely means. */
const TOOL_FOLDERS: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', 'node_modules', '.venv', '__pycache__']);

/** Whether a folder is read (`path` ends with a slash). A folder of a tool is read only when `match` names it. */
export function isLookedInto(path: string, match: string): boolean {
  const name = path.split('/').at(-2) ?? '';
  return !TOOL_FOLDERS.has(name) || match.toLowerCase().includes(`${name}/`);
}

/** How well a path matches, smaller is better: its name begins with `match`, its name contains it, its folders do. Null: no match. */
export function fitOf(path: string, match: string): number | null {
  const [whole, wanted] = [path.toLowerCase(), match.toLowerCase()];
  const at = whole.lastIndexOf(wanted);
  if (at === -1) return null;
  const name = whole.lastIndexOf('/', whole.length - 2) + 1;
  if (whole.startsWith(wanted, name)) return 0;
  return at > name ? 1 : 2;
}

/** The best matches. Of equal ones, those in fewer folders come first, then by name. */
export function bestFiles(all: readonly string[], match: string, isWhole: boolean): Files {
  const matches = all.flatMap((path) => {
    const rank = fitOf(path, match);
    return rank === null ? [] : [{ path, rank, depth: path.split('/').length }];
  });
  matches.sort((a, b) => a.rank - b.rank || a.depth - b.depth || (a.path < b.path ? -1 : 1));
  const paths = matches.slice(0, MOST_PATHS).map(({ path }) => path);
  return { paths, more: !isWhole || matches.length > paths.length };
}
