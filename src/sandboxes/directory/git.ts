import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { mkdir, mkdtemp, open, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import { MOST_SAID, upTo } from '../shared/changes-inside.ts';
import {
  formatFor,
  type Git,
  GitFailed,
  outputLimit,
  type Printed,
  type Repository,
  SAFE_ENV,
  SAFE_OPTIONS,
} from '../shared/compare.ts';

interface Where {
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
  /** How many bytes of the output of every command are kept. Left out: see `outputLimit`. */
  readonly most?: number;
}

/** Runs git with a temporary git directory of our own for this repository. `index`: the path of our copy of its index. */
export async function withOwnGit<T>(
  repository: Repository,
  { cwd, signal, env = {}, most }: Where,
  use: (git: Git, index: string) => Promise<T>,
): Promise<T> {
  const ours = await mkdtemp(join(tmpdir(), 'throughline-changes-'));
  try {
    const own = await gitDirectory(ours, repository);
    return await use((...args) => run(args, cwd, { ...own, ...env }, signal, most), join(ours, 'index'));
  } finally {
    await rm(ours, { recursive: true, force: true });
  }
}

/** Returns the environment in which git uses our directory, and only the objects of the repository. */
async function gitDirectory(
  ours: string,
  { top, objects, index, exclude, head }: Repository,
): Promise<Record<string, string>> {
  await Promise.all(['objects', 'refs', 'info'].map((name) => mkdir(join(ours, name))));
  await writeFile(join(ours, 'config'), formatFor(head));
  await writeFile(join(ours, 'HEAD'), 'ref: refs/heads/none\n');
  // Without the index, every file would be untracked.
  await copyIfThere(index, join(ours, 'index'));
  await copyIfThere(exclude, join(ours, 'info', 'exclude'));
  return { ...SAFE_ENV, GIT_DIR: ours, GIT_WORK_TREE: top, GIT_OBJECT_DIRECTORY: objects };
}

/** Throws `GitFailed` if it is not a file: opening a pipe would block a thread of Node's pool until somebody writes to the pipe. */
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
    // Git compares this time with those of the files, to find those that may have changed in the same second as the index.
    const writtenAt = new Date(Math.floor(found.mtimeMs));
    await utimes(to, writtenAt, writtenAt);
  } finally {
    await file.close();
  }
}

/**
 * Throws `refused` for a repository that uses the objects of another one. Isolated agents must not see that one: an agent that works in the
 * repository can name any other there.
 */
export async function refuseBorrowed(objects: string): Promise<void> {
  const list = join(objects, 'info', 'alternates');
  const found = await stat(list).catch(() => null);
  if (found === null || (found.isFile() && found.size === 0)) return;
  throw new ThroughlineError('refused', `The repository uses objects of another one (git alternates): ${list}.`, {
    hint: 'Isolated agents do not see that repository. Run "git repack -a -d" there, and delete this file.',
  });
}

/** Runs git on this machine. Throws `GitFailed`, and `refused` when there is no git. */
export async function run(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
  most = outputLimit(args),
): Promise<Printed> {
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
  const own = { PATH: process.env.PATH ?? '', ...env };
  const child = spawn('git', [...SAFE_OPTIONS, ...args], { cwd, env: own, signal, killSignal: 'SIGKILL', stdio });
  const ended = once(child, 'close').catch((cause: NodeJS.ErrnoException) => {
    const isMissing = cause.code === 'ENOENT';
    throw isMissing ? new ThroughlineError('refused', 'Cannot run git.', { hint: 'Install git.', cause }) : cause;
  });
  const [out, said, [code]] = await Promise.all([
    upTo(most, child.stdout, () => child.kill('SIGKILL')),
    upTo(MOST_SAID, child.stderr),
    ended,
  ]);
  if (code === 0 || !out.isWhole) return out;
  throw new GitFailed(said.text.trim() || `git ended with ${code}`, out.text);
}
