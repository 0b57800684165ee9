import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, rm, utimes, writeFile } from 'node:fs/promises';
import { devNull, tmpdir } from 'node:os';
import { join } from 'node:path';
import { MOST_PATCHES } from '../../core/changes.ts';
import { ThroughlineError } from '../../core/errors.ts';

/*
 * The agent can write to the repository, its configuration included, and much of that runs programs: hooks, external diffs, text
 * conversions, filters, file system monitors, the fetching of missing objects. So git never works with that configuration. Only where the
 * repository is, is asked of it. The rest happens in a git directory of our own, which has no configuration, and reads the objects of
 * the repository, a copy of its index, and the files.
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

const MOST_LISTED = 4 * 1_048_576;

/** What git prints. Throws `GitFailed`. */
export type Git = (...args: string[]) => Promise<{ text: string; isWhole: boolean }>;

interface Where {
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs git in a directory of our own for this repository; it is gone afterwards. `index`: the path of our copy of its index. */
export async function withOwnGit<T>(
  repository: Repository,
  { cwd, signal, env = {} }: Where,
  use: (git: Git, index: string) => Promise<T>,
): Promise<T> {
  const ours = await mkdtemp(join(tmpdir(), 'throughline-changes-'));
  try {
    const own = await gitDirectory(ours, repository);
    return await use((...args) => run(args, cwd, { ...own, ...env }, signal), join(ours, 'index'));
  } finally {
    await rm(ours, { recursive: true, force: true });
  }
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
export const BARE = {
  ...{ PATH: process.env.PATH ?? '', LC_ALL: 'C', HOME: devNull },
  ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: devNull, GIT_ATTR_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' },
  ...{ GIT_NO_LAZY_FETCH: '1', GIT_ALLOW_PROTOCOL: 'none', GIT_OPTIONAL_LOCKS: '0', GIT_LITERAL_PATHSPECS: '1' },
};

export class GitFailed extends Error {
  /** What it had printed until then. */
  readonly printed: string;

  constructor(said: string, printed = '') {
    super(said);
    this.printed = printed;
  }
}

/** `isWhole`: it printed no more than is taken. Throws `GitFailed`, and `refused` when there is no git. */
export function run(
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
    else reject(new GitFailed(said.trim() || `git ended with ${code}`, text));
  });
  return promise;
}
