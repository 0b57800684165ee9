import { posix } from 'node:path';
import {
  bounded,
  type ChangedFile,
  type Changes,
  changedFile,
  MOST_COMPARED,
  MOST_FILES,
  MOST_PATCH,
  MOST_PATCHES,
  patchesOf,
  rawEntries,
  type SizedFile,
  thoseBeyond,
  untrackedFile,
} from '../../core/changes.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { Folder } from '../../ports/sandbox.ts';

/*
 * An agent can write to the repository and to its configuration, which can run programs: hooks, external diffs, text conversions,
 * filters, file system monitors, the fetching of missing objects. So git uses that configuration only to find the repository.
 * Everything else runs in a git directory of our own. It has no configuration, and reads the objects of the repository, a copy of its
 * index, and the files.
 */

export interface Repository {
  /** Its files. */
  readonly top: string;
  readonly objects: string;
  readonly index: string;
  readonly exclude: string;
  /** Null: there is no commit yet. */
  readonly head: string | null;
}

export interface Printed {
  readonly text: string;
  /** False: the output was cut at the limit. */
  readonly isWhole: boolean;
}

/** Runs git. Throws `GitFailed`. */
export type Git = (...args: string[]) => Promise<Printed>;

export class GitFailed extends Error {
  /** Its standard output until then. */
  readonly printed: string;

  constructor(said: string, printed = '') {
    super(said);
    this.printed = printed;
  }
}

const NOWHERE = '/dev/null';

/** Options of every call. */
export const SAFE_OPTIONS = ['-c', 'core.fsmonitor=false', '-c', `core.hooksPath=${NOWHERE}`, '--no-pager'];

/** No settings of the person or the machine, no questions, nothing fetched, nothing written. */
export const SAFE_ENV = {
  ...{ LC_ALL: 'C', HOME: NOWHERE },
  ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: NOWHERE, GIT_ATTR_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' },
  ...{ GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: 'none', GIT_OPTIONAL_LOCKS: '0', GIT_LITERAL_PATHSPECS: '1' },
};

const MOST_LISTED = 4 * 1_048_576;

/** Of a list that must be whole. */
export const MOST_STAGED = 64 * 1_048_576;

/** How many bytes of the output of a git command are kept. */
export function outputLimit(args: readonly string[]): number {
  if (args.includes('--stage')) return MOST_STAGED;
  return args.includes('--patch') ? MOST_PATCHES : MOST_LISTED;
}

/** The configuration of a git directory of our own. */
export const formatFor = (head: string | null) =>
  head !== null && head.length > 40 ? '[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n' : '';

/**
 * The repository of a directory; `git` runs in it. Git is asked only for paths, so nothing that the repository names is run. Throws
 * `GitFailed` when there is none.
 */
export async function repositoryBy(git: Git, directory: string): Promise<Repository> {
  const ask = (...args: string[]) => git('-c', 'safe.directory=*', 'rev-parse', ...args);
  const paths = ['objects', 'index', 'info/exclude'].flatMap((name) => ['--git-path', name]);
  const [found, head] = await Promise.all([
    ask('--show-toplevel', ...paths),
    ask('--verify', '--quiet', 'HEAD').catch((error: unknown) => {
      if (error instanceof GitFailed) return null;
      throw error;
    }),
  ]);
  const [top = '', ...rest] = found.text.split('\n');
  const [objects = '', index = '', exclude = ''] = rest.map((path) => posix.resolve(directory, path));
  return { top, objects, index, exclude, head: head?.text.trim() ?? null };
}

/** The changes in a folder; `git` runs in it. */
export async function compare(git: Git, head: string | null, folder: Folder, signal: AbortSignal): Promise<Changes> {
  const [tracked, untracked] = await Promise.all([
    head === null ? { files: [], more: 0 } : trackedFiles(git, head, folder, signal),
    untrackedFiles(git, folder, signal),
  ]);
  return bounded(head, [...tracked.files, ...untracked.files], tracked.more + untracked.more);
}

const COMPARED = ['diff', '--no-ext-diff', '--no-textconv', '--no-renames', '--no-color', '--ignore-submodules=all'];

async function trackedFiles(
  git: Git,
  head: string,
  folder: Folder,
  signal: AbortSignal,
): Promise<{ files: ChangedFile[]; more: number }> {
  const listed = await git(...COMPARED, '--raw', '-z', '--relative', head, '--', '.');
  const all = rawEntries(listed.text.slice(0, listed.text.lastIndexOf('\0') + 1));
  const entries = all.slice(0, MOST_FILES);
  const compared = await readable(entries, all.slice(MOST_FILES), folder, signal);
  const paths = compared.map(({ path }) => path);
  const none = { text: '', isWhole: true };
  const patches = paths.length === 0 ? none : await git(...COMPARED, '--patch', '--relative', head, '--', ...paths);
  const texts = patchesOf(compared, patches.text);
  const last = texts.findLastIndex((text) => text !== '');
  const files = entries.map((entry) => {
    const at = compared.indexOf(entry);
    const isWhole = at !== -1 && (patches.isWhole || at < last);
    return changedFile(entry.path, entry.change, texts[at] ?? '', isWhole);
  });
  return { files, more: all.length - entries.length + (listed.isWhole ? 0 : 1) };
}

type Entry = ReturnType<typeof rawEntries>[number];

/** All paths together: arguments of a program are limited. */
const MOST_PATHS = 100_000;

/**
 * Those whose patches git can make soon: it reads all of a changed file, and a sparse one may have any size. Git takes a path for
 * everything below it as well, so a deleted file with one below it that must not be read is not among them.
 */
async function readable(
  entries: readonly Entry[],
  others: readonly Entry[],
  folder: Folder,
  signal: AbortSignal,
): Promise<Entry[]> {
  const there = entries.filter(({ change }) => change !== 'deleted').map(({ path }) => path);
  const large = thoseBeyond(MOST_COMPARED, await sizesOf(folder, there, signal)).map(({ path }) => path);
  let space = MOST_PATHS;
  const fitting = entries.filter(({ path }) => {
    space -= Buffer.byteLength(path) + 1;
    return space > 0 && !large.includes(path);
  });
  const unread = [...entries.filter((entry) => !fitting.includes(entry)), ...others];
  return fitting.filter(({ path }) => !unread.some((other) => other.path.startsWith(`${path}/`)));
}

/** How much git would read of each. Without what is gone, and what is no file. */
export async function sizesOf(folder: Folder, paths: readonly string[], signal: AbortSignal): Promise<SizedFile[]> {
  const sizes: SizedFile[] = [];
  for (const path of paths) {
    signal.throwIfAborted();
    const found = await folder.stat(path).catch((error: unknown) => {
      if (error instanceof ThroughlineError) return null; // through a link: git takes it for deleted
      throw error;
    });
    if (found?.kind === 'file') sizes.push({ path, bytes: found.size });
  }
  return sizes;
}

async function untrackedFiles(
  git: Git,
  folder: Folder,
  signal: AbortSignal,
): Promise<{ files: ChangedFile[]; more: number }> {
  const { text, isWhole } = await git('ls-files', '--others', '--exclude-standard', '-z', '--', '.');
  const paths = text
    .slice(0, text.lastIndexOf('\0') + 1)
    .split('\0')
    .filter(Boolean);
  const files: ChangedFile[] = [];
  for (const path of paths.slice(0, MOST_FILES)) {
    signal.throwIfAborted();
    files.push(untrackedFile(path, await textOf(folder, path)));
  }
  return { files, more: paths.length - files.length + (isWhole ? 0 : 1) };
}

/** Null: it is not a file, or it is too large. */
async function textOf(folder: Folder, path: string): Promise<string | null> {
  try {
    const found = await folder.read(path, { most: MOST_PATCH });
    if (found === null || found.size > MOST_PATCH) return null;
    return Buffer.from(found.bytes).toString('utf8');
  } catch (error) {
    if (error instanceof ThroughlineError) return null;
    throw error;
  }
}

/** Does the work within a time limit. Throws `timed_out`, and `refused` when git fails, without the path of the directory. */
export async function inTime<T>(milliseconds: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(milliseconds);
  try {
    return await work(signal);
  } catch (error) {
    if (error instanceof GitFailed && !signal.aborted) {
      throw new ThroughlineError('refused', 'Git cannot compare the directory of this conversation.', {
        hint: error.message,
        cause: error,
      });
    }
    if (!signal.aborted) throw error;
    const seconds = milliseconds / 1_000;
    throw new ThroughlineError(
      'timed_out',
      `Git needs more than ${seconds} seconds to compare the directory of this conversation.`,
      {
        hint: 'Look there with "git status" and "git diff".',
        cause: error,
      },
    );
  }
}

export function noWorkYet(): ThroughlineError {
  return new ThroughlineError('not_found', 'The agent of this conversation has not worked in a directory yet.');
}

/** Without the path, as above: that of a sandbox is not public. */
export function noRepository(): ThroughlineError {
  return new ThroughlineError('not_found', 'The directory of this conversation is not in a git repository.', {
    hint: 'Changes are shown where the agent works in a repository: create the conversation with the directory of one (cwd).',
  });
}
