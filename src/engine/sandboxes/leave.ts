import { posix } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { hasCode, ThroughlineError } from '../../core/errors.ts';
import { quotedPath } from '../../core/input/visible.ts';
import { MARK } from '../../core/process.ts';
import { type Sandbox, sandboxInUse } from '../../core/sandbox/sandbox.ts';
import { isWorktree } from '../../core/sandbox/sandbox-id.ts';
import type { OpenSandbox, Sandboxes } from '../../ports/sandbox.ts';
import type { EngineParts } from '../parts.ts';
import { kill } from '../worker/kill.ts';
import type { Worker } from '../worker/worker.ts';
import { hold, newHolder, whileHeld } from './alone.ts';
import { type RunOptions, runIn } from './command.ts';

export interface LeaveRequest {
  readonly parts: EngineParts;
  readonly worker: Worker;
  readonly sandbox: Sandbox;
  /** Who asked for it, and why, as events have it. */
  readonly by: string;
  readonly reason: string;
  /** A time: throws `conflict` if somebody has used the sandbox after it. Left out: only if somebody uses it now. */
  readonly unusedSince?: number;
}

/** How long it may take until the lease of a conversation is released after its warm session was ended. */
const RELEASED_MS = 5_000;
const LOOK_MS = 100;
const MOST_USES = 1_000;

/** Ends the sessions that wait for a prompt in it, and stops what keeps it running. Throws `conflict` while it is used. */
export async function restSandbox(request: LeaveRequest): Promise<void> {
  const { parts, sandbox, reason } = request;
  await whileUnused(request, async (lost) => {
    lost.throwIfAborted();
    await parts.sandboxes.rest?.(sandbox.id);
    await parts.store.leaveSandbox(sandbox.owner, sandbox.id, 'rested', reason);
  });
}

/**
 * Deletes it with everything in it. Throws `conflict` while it is used. Unless `force`, throws `refused` when unsaved work is in it (files
 * in no git repository, uncommitted changes, unpushed commits), or when a conversation that does not have this sandbox works in a directory
 * of it. `force` deletes neither the directory of another owner's conversation, nor one that is in use.
 */
export async function removeSandbox(request: LeaveRequest, force: boolean): Promise<void> {
  const { parts, sandbox, reason } = request;
  const { sandboxes, store } = parts;
  await whileUnused(request, async (lost) => {
    const path = await sandboxes.find(sandbox.id);
    if (path !== null) await checkDirectories(request, path, force);
    // `remove` checks a worktree itself.
    const unsaved = force || path === null || isWorktree(sandbox.id) ? null : await unsavedIn(request, lost);
    // A turn may have begun meanwhile.
    lost.throwIfAborted();
    if (unsaved !== null) throw unsavedWork(unsaved, '"--force" removes the sandbox with it.');
    await sandboxes.remove(sandbox.id, { discard: force });
    await store.leaveSandbox(sandbox.owner, sandbox.id, 'destroyed', reason);
  });
}

/** Ends the warm sessions in a sandbox, takes it alone, and does the work. Throws `conflict` while it is used. `lost`: as in `whileHeld`. */
async function whileUnused(request: LeaveRequest, work: (lost: AbortSignal) => Promise<void>): Promise<void> {
  const { parts, worker, sandbox, by, unusedSince = Number.POSITIVE_INFINITY } = request;
  const { store, clock } = parts;
  const { owner, id } = sandbox;
  const checkSince = async () => {
    const now = await store.findSandbox(owner, id);
    if (now !== null && now.usedAt > unusedSince) throw sandboxInUse('somebody has used it meanwhile');
  };
  await checkSince();
  let waitMs = 0;
  for (const { conversation } of await store.sandboxUses(owner, id, MOST_USES)) {
    const { open, lock } = await store.summary(owner, conversation);
    if (open > 0) throw sandboxInUse('a turn of a conversation in it has not ended');
    if (lock === null) continue;
    await kill(parts, worker, { owner, id: conversation, by });
    waitMs = RELEASED_MS;
  }
  const holding = { parts, worker: newHolder(worker.self), owner, id, signal: worker.shutdown };
  const until = clock.monotonic() + waitMs;
  for (;;) {
    try {
      if (!(await hold(holding, { unused: true }))) throw new ThroughlineError('closed', 'Throughline is closed.');
      break;
    } catch (error) {
      if (!hasCode(error, 'conflict') || clock.monotonic() >= until) throw error;
      await delay(LOOK_MS);
    }
  }
  const leave = async (lost: AbortSignal) => {
    await checkSince();
    await work(lost);
  };
  await whileHeld(holding, leave, { unused: true });
}

/** Callers may have named directories inside the sandbox. Their conversations could not continue, because such a directory is not made again. */
async function checkDirectories({ parts, sandbox }: LeaveRequest, path: string, force: boolean): Promise<void> {
  const use = await parts.store.worksBelow(sandbox.owner, { place: sandbox.place, path });
  if (use === null) return;
  const who =
    use.owner === sandbox.owner ? `the conversation ${use.key ?? use.conversation}` : 'a conversation of another owner';
  if (use.busy) throw sandboxInUse(`${who} works in a directory of it`);
  if (force && use.owner === sandbox.owner) return;
  throw new ThroughlineError('refused', `The directory of ${who} is inside the sandbox and would be deleted.`, {
    hint: 'Erase that conversation first, or fork it into another directory. "--force" removes the sandbox if the conversation is your own.',
  });
}

/** How deep, and among how many entries, repositories are searched for. Beyond that, everything counts as unsaved. */
const DEEPEST = 4;
const MOST_ENTRIES = 2_000;
const GIT_MS = 30_000;

function unsavedWork(which: string, howToRemove: string): ThroughlineError {
  return new ThroughlineError('refused', `Unsaved work is in the sandbox: ${which}.`, {
    hint: `Save it first: commit and push it, or copy it. ${howToRemove}`,
  });
}

async function unsavedIn({ parts, sandbox, worker }: LeaveRequest, lost: AbortSignal): Promise<string | null> {
  const open = await parts.sandboxes.open(sandbox.id, { cwd: null });
  const signal = AbortSignal.any([worker.shutdown, lost]);
  return unsavedWorkIn(open, { signal, monotonic: () => parts.clock.monotonic() });
}

/**
 * Deletes a sandbox on another machine that no conversation has. Throws `conflict` while programs run in it, and `refused` when unsaved work is
 * in it: it may belong to a conversation of another data home. These checks take long on another machine, so `check` is called after them: it
 * throws if a conversation has the sandbox by now.
 */
export async function removeLeftOver(
  sandboxes: Sandboxes,
  id: string,
  options: CheckOptions,
  check: () => Promise<void>,
): Promise<void> {
  if ((await sandboxes.find(id)) === null) return;
  const open = await sandboxes.open(id, { cwd: null });
  const folder = posix.dirname(open.work);
  const unsaved = await unsavedWorkIn(open, options);
  if (unsaved !== null) throw unsavedWork(unsaved, `Delete ${folder} there by hand if nobody needs it.`);
  await refuseRunning(open, folder, options);
  await check();
  await sandboxes.remove(id);
}

async function refuseRunning(open: OpenSandbox, folder: string, options: CheckOptions): Promise<void> {
  const run = { ...options, cwd: '/', timeoutMs: GIT_MS };
  const { code, output } = await runIn(open, ['/bin/sh', '-c', RUNNING, 'sh', folder], run);
  if (code !== 0) {
    const why = output.trim() || 'no answer';
    throw new ThroughlineError('conflict', `Cannot find out what runs in the sandbox (${why}).`, {
      hint: 'Try again. If that does not help, look for processes there by hand.',
    });
  }
  if (output === '') return;
  const [first] = output.split('\n');
  throw new ThroughlineError('conflict', `The sandbox is in use: the process ${first} runs in it.`, {
    hint: 'End it there, and try again.',
  });
}

/** Prints the processes whose working directory is in the folder, and the marked ones whose environment names it. */
const RUNNING = `for p in /proc/[0-9]*; do
case $(readlink "$p/cwd" 2>/dev/null)/ in "$1"/*) echo "\${p#/proc/}"; continue ;; esac
if grep -qsF -- "${MARK}=" "$p/environ" && grep -qsF -- "$1/" "$p/environ"; then echo "\${p#/proc/}"; fi
done; :`;

type CheckOptions = Pick<RunOptions, 'signal' | 'monotonic'>;

/** What would be lost with its working directory; null: nothing. */
async function unsavedWorkIn(open: OpenSandbox, options: CheckOptions): Promise<string | null> {
  const git = await open.find('git');
  const folder = await open.folder(open.work);
  const waiting = [{ path: '', depth: 0 }];
  let seen = 0;
  for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
    const entries = (await folder.list(at.path)) ?? [];
    seen += entries.length;
    if (seen > MOST_ENTRIES) return 'more than can be looked at';
    if (entries.some(({ name }) => name === '.git')) {
      if (git === null) return `a git repository in ${quotedPath(at.path || '.')}, and there is no git to look at it`;
      const unsaved = await unsavedInRepository(open, git, at.path, options);
      if (unsaved !== null) return unsaved;
      continue;
    }
    for (const { name, kind } of entries) {
      const path = at.path === '' ? name : `${at.path}/${name}`;
      if (kind === 'link') continue;
      if (kind !== 'folder') return `the file ${quotedPath(path)} is in no git repository`;
      if (at.depth === DEEPEST) return `the folder ${quotedPath(path)} is too deep to look into`;
      waiting.push({ path, depth: at.depth + 1 });
    }
  }
  return null;
}

/** Git runs in the sandbox, with the rights of the agent. */
async function unsavedInRepository(
  open: OpenSandbox,
  git: string,
  path: string,
  options: CheckOptions,
): Promise<string | null> {
  const cwd = path === '' ? open.work : `${open.work}/${path}`;
  const ask = (...args: string[]) =>
    runIn(open, [git, '-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null', ...args], {
      ...options,
      timeoutMs: GIT_MS,
      cwd,
    });
  const where = quotedPath(path) || 'the working directory';
  const status = await ask('status', '--porcelain', '--untracked-files=normal');
  if (status.code !== 0) return `git cannot look at ${where}`;
  if (status.output !== '') return `changes in ${where} are not committed`;
  const remotes = await remotesOutside(open, cwd, (await ask('remote', '--verbose')).output);
  const unpushed = await ask(...COMMITS, ...(remotes.length === 0 ? [] : ['--not', ...remotes]));
  if (unpushed.code !== 0 || unpushed.output !== '') return `commits in ${where} were not pushed`;
  const stash = await ask('stash', 'list');
  if (stash.code !== 0 || stash.output !== '') return `a stash is in ${where}`;
  const submodules = await ask('submodule', '--quiet', 'foreach', 'printf "%s\\n" "$sm_path"');
  if (submodules.code !== 0) return `git cannot look at the submodules of ${where}`;
  for (const name of submodules.output.split('\n').filter(Boolean)) {
    const unsaved = await unsavedInRepository(open, git, path === '' ? name : `${path}/${name}`, options);
    if (unsaved !== null) return unsaved;
  }
  return null;
}

const COMMITS = ['log', '--oneline', '-n', '1', '--branches', '--tags', 'HEAD'];

/**
 * The remotes whose commits count as saved, as options of git. Not one that is in the sandbox, because it would be deleted with it, nor one
 * that is gone.
 */
async function remotesOutside(open: OpenSandbox, cwd: string, listed: string): Promise<string[]> {
  const outside: string[] = [];
  for (const [, name = '', url = ''] of listed.matchAll(/^([^\t]+)\t(.*) \(push\)$/gm)) {
    const path = url.replace(/^file:\/\/(localhost)?/, '');
    // Other addresses are like `host:path`: they have a colon, and no slash before it.
    const isPath = path !== url || !/^[^/]*:/.test(url);
    if (!isPath || (await isThereOutside(open, posix.resolve(cwd, path)))) outside.push(`--remotes=${name}`);
  }
  return outside;
}

async function isThereOutside(open: OpenSandbox, path: string): Promise<boolean> {
  const [real, own] = await Promise.all([open.realPath(path), open.realPath(posix.dirname(open.work))]);
  if (real.startsWith(`${own}/`)) return false;
  // A path that programs in the sandbox do not see does not exist for them: for example in a /tmp of their own, which is deleted when they end.
  const folder = await open.folder(real).catch((error: unknown) => {
    if (hasCode(error, 'refused')) return null;
    throw error;
  });
  return folder !== null && (await folder.list('')) !== null;
}
