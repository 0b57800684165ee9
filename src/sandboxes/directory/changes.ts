import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, rm, utimes, writeFile } from 'node:fs/promises';
import { devNull, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import {
  bounded,
  type ChangedFile,
  type Changes,
  changedFile,
  MOST_FILES,
  MOST_PATCH,
  MOST_PATCHES,
  patchesOf,
  rawEntries,
  untrackedFile,
} from '../../core/changes.ts';
import { ThroughlineError } from '../../core/errors.ts';

/*
 * The agent can write to the repository, its configuration included, and much of that runs programs: hooks, external diffs, text
 * conversions, filters, file system monitors, the fetching of missing objects. So git never works with that configuration. Only where the
 * repository is, is asked of it. The rest happens in a git directory of our own, which has no configuration, and reads the objects of
 * the repository, a copy of its index, and the files.
 */

/** All of it together. */
const TIME_MS = 10_000;
const MOST_LISTED = 4 * 1_048_576;

interface Repository {
  readonly top: string;
  readonly objects: string;
  readonly index: string;
  readonly exclude: string;
  /** Null: there is no commit yet. */
  readonly head: string | null;
}

/**
 * What differs below `directory` from the last commit. `within`: repositories that begin above it do not count. Throws `not_found` when
 * there is no repository, `timed_out` when it takes too long, and `refused` when git is missing or cannot read it.
 */
export async function changesIn(directory: string, within: string | null): Promise<Changes> {
  const signal = AbortSignal.timeout(TIME_MS);
  const repository = await findRepository(directory, within, signal);
  const ours = await mkdtemp(join(tmpdir(), 'throughline-changes-'));
  try {
    const env = await gitDirectory(ours, repository);
    const git = (...args: string[]) => run(args, directory, env, signal);
    const tracked = repository.head === null ? { files: [], more: 0 } : await trackedFiles(git, repository.head);
    const untracked = await untrackedFiles(git, directory);
    return bounded(repository.head, [...tracked.files, ...untracked.files], tracked.more + untracked.more);
  } catch (error) {
    if (error instanceof GitFailed && !signal.aborted) {
      throw new ThroughlineError('refused', `Git cannot compare ${directory}.`, { hint: error.message, cause: error });
    }
    if (!signal.aborted) throw error;
    throw new ThroughlineError('timed_out', `Git needs more than ${TIME_MS / 1_000} seconds to compare ${directory}.`, {
      hint: 'Look there with "git status" and "git diff".',
      cause: error,
    });
  } finally {
    await rm(ours, { recursive: true, force: true });
  }
}

type Git = (...args: string[]) => Promise<{ text: string; isWhole: boolean }>;

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

/** Returns the environment in which git uses our directory, and nothing of the repository but its objects. */
async function gitDirectory(
  ours: string,
  { top, objects, index, exclude, head }: Repository,
): Promise<Record<string, string>> {
  await Promise.all(['objects', 'refs', 'info'].map((name) => mkdir(join(ours, name))));
  const isLong = head !== null && head.length > 40;
  const format = isLong ? '[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n' : '';
  await writeFile(join(ours, 'config'), format);
  await writeFile(join(ours, 'HEAD'), 'ref: refs/heads/none\n');
  // Without it every file would be compared byte by byte; and none is known to git.
  await copyIfThere(index, join(ours, 'index'));
  await copyIfThere(exclude, join(ours, 'info', 'exclude'));
  return { ...BARE, GIT_DIR: ours, GIT_WORK_TREE: top, GIT_OBJECT_DIRECTORY: objects };
}

/** Throws `GitFailed` for what is no file: to open a pipe would block a thread that all work with files needs, until somebody writes to it. */
async function copyIfThere(from: string, to: string): Promise<void> {
  const file = await open(from, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (file === null) return;
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new GitFailed(`${from} is not a file.`);
    await writeFile(to, file.createReadStream({ autoClose: false }));
    // By the time of its index git knows which files may have changed since without showing it: those of the same second.
    const writtenAt = new Date(Math.floor(found.mtimeMs));
    await utimes(to, writtenAt, writtenAt);
  } finally {
    await file.close();
  }
}

/** No settings of the person or the machine, no questions, nothing fetched, nothing written. */
const BARE = {
  ...{ PATH: process.env.PATH ?? '', LC_ALL: 'C', HOME: devNull },
  ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: devNull, GIT_ATTR_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' },
  ...{ GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: 'none', GIT_OPTIONAL_LOCKS: '0', GIT_LITERAL_PATHSPECS: '1' },
};

class GitFailed extends Error {}

/** `isWhole`: it printed no more than is taken. Throws `GitFailed`, and `refused` when there is no git. */
function run(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ text: string; isWhole: boolean }> {
  const { promise, resolve: done, reject } = Promise.withResolvers<{ text: string; isWhole: boolean }>();
  const quiet = ['-c', 'core.fsmonitor=false', '-c', `core.hooksPath=${devNull}`, '--no-pager'];
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  const child = spawn('git', [...quiet, ...args], { cwd, env, signal, killSignal: 'SIGKILL', stdio });
  const chunks: Buffer[] = [];
  let [bytes, said] = [0, ''];
  const most = args.includes('--patch') ? MOST_PATCHES : MOST_LISTED;
  child.stdout.on('data', (chunk: Buffer) => {
    if (bytes < most) chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= most) child.kill('SIGKILL');
  });
  child.stderr.on('data', (chunk: Buffer) => {
    if (said.length < 2_000) said += chunk.toString('utf8');
  });
  child.on('error', (cause: NodeJS.ErrnoException) => {
    const isMissing = cause.code === 'ENOENT';
    reject(isMissing ? new ThroughlineError('refused', 'Cannot run git.', { hint: 'Install git.', cause }) : cause);
  });
  child.on('close', (code) => {
    const text = Buffer.concat(chunks).toString('utf8');
    if (code === 0 || bytes >= most) done({ text, isWhole: bytes < most });
    else reject(new GitFailed(said.trim() || `git ended with ${code}`));
  });
  return promise;
}
