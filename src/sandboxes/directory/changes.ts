import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import {
  bounded,
  type ChangedFile,
  type Changes,
  changedFile,
  MOST_FILES,
  MOST_PATCH,
  patchesOf,
  rawEntries,
  untrackedFile,
} from '../../core/changes.ts';
import { ThroughlineError } from '../../core/errors.ts';
import { BARE, type Git, GitFailed, type Repository, run, withOwnGit } from './git.ts';

/** All of it together. */
const TIME_MS = 10_000;

/**
 * What differs below `directory` from the last commit. `within`: repositories that begin above it do not count. Throws `not_found` when
 * there is no repository, `timed_out` when it takes too long, and `refused` when git is missing or cannot read it.
 */
export async function changesIn(directory: string, within: string | null): Promise<Changes> {
  return compared(directory, (signal) => findRepository(directory, within, signal));
}

/** The same when it is known which repository it is. */
export async function compared(
  directory: string,
  find: (signal: AbortSignal) => Promise<Repository>,
): Promise<Changes> {
  const signal = AbortSignal.timeout(TIME_MS);
  try {
    const repository = await find(signal);
    return await withOwnGit(repository, { cwd: directory, signal }, async (git) => {
      const tracked = repository.head === null ? { files: [], more: 0 } : await trackedFiles(git, repository.head);
      const untracked = await untrackedFiles(git, directory);
      return bounded(repository.head, [...tracked.files, ...untracked.files], tracked.more + untracked.more);
    });
  } catch (error) {
    if (error instanceof GitFailed && !signal.aborted) {
      throw new ThroughlineError('refused', `Git cannot compare ${directory}.`, { hint: error.message, cause: error });
    }
    if (!signal.aborted) throw error;
    throw new ThroughlineError('timed_out', `Git needs more than ${TIME_MS / 1_000} seconds to compare ${directory}.`, {
      hint: 'Look there with "git status" and "git diff".',
      cause: error,
    });
  }
}

const COMPARED = ['diff', '--no-ext-diff', '--no-textconv', '--no-renames', '--no-color', '--ignore-submodules=all'];

async function trackedFiles(git: Git, head: string): Promise<{ files: ChangedFile[]; more: number }> {
  const [listed, patches] = await Promise.all([
    git(...COMPARED, '--raw', '-z', '--relative', head, '--', '.'),
    git(...COMPARED, '--patch', '--relative', head, '--', '.'),
  ]);
  const entries = rawEntries(listed.text.slice(0, listed.text.lastIndexOf('\0') + 1));
  const texts = patchesOf(entries, patches.text);
  const last = texts.findLastIndex((text) => text !== '');
  const files = entries.map(({ path, change }, at) => {
    const isWhole = patches.isWhole || at < last;
    return changedFile(path, change, texts[at] ?? '', isWhole);
  });
  return { files, more: listed.isWhole ? 0 : 1 };
}

async function untrackedFiles(git: Git, directory: string): Promise<{ files: ChangedFile[]; more: number }> {
  const { text, isWhole } = await git('ls-files', '--others', '--exclude-standard', '-z', '--', '.');
  const paths = text
    .slice(0, text.lastIndexOf('\0') + 1)
    .split('\0')
    .filter(Boolean);
  const files: ChangedFile[] = [];
  for (const path of paths.slice(0, MOST_FILES)) files.push(untrackedFile(path, await textOf(join(directory, path))));
  return { files, more: paths.length - files.length + (isWhole ? 0 : 1) };
}

/** Null: it is no file, or not a small text. A link is not followed, and a pipe not waited for. */
async function textOf(path: string): Promise<string | null> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => null);
  if (file === null) return null;
  try {
    const stat = await file.stat();
    if (!stat.isFile() || stat.size > MOST_PATCH) return null;
    const bytes = Buffer.alloc(MOST_PATCH);
    const { bytesRead } = await file.read(bytes, 0, MOST_PATCH, 0);
    return bytes.subarray(0, bytesRead).toString('utf8');
  } finally {
    await file.close();
  }
}

/** Asks git only for names of files, which runs nothing. */
async function findRepository(directory: string, within: string | null, signal: AbortSignal): Promise<Repository> {
  const env = { ...BARE, ...(within !== null && { GIT_CEILING_DIRECTORIES: dirname(within) }) };
  const git = (...args: string[]) => run(['-c', 'safe.directory=*', 'rev-parse', ...args], directory, env, signal);
  const paths = ['objects', 'index', 'info/exclude'].flatMap((name) => ['--git-path', name]);
  const found = await git('--show-toplevel', ...paths).catch((error: unknown) => {
    if (!(error instanceof GitFailed)) throw error;
    throw new ThroughlineError('not_found', `The directory ${directory} is not in a git repository.`, {
      hint: 'Changes are shown where the agent works in a repository: create the conversation with the directory of one (cwd).',
    });
  });
  const [top = '', objects = '', index = '', exclude = ''] = found.text.split('\n');
  const head = await git('--verify', '--quiet', 'HEAD').then(
    ({ text }) => text.trim(),
    () => null,
  );
  const at = (path: string) => resolve(directory, path);
  return { top, objects: at(objects), index: at(index), exclude: at(exclude), head };
}
