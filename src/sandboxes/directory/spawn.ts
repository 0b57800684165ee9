import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { ThroughlineError } from '../../core/errors.ts';
import { MARK, type ProcessIdentity } from '../../core/process.ts';
import type { Child } from '../../ports/sandbox.ts';
import { allowedEnvironment } from './environment.ts';
import { endWithUs, signalGroup } from './group.ts';

export interface SpawnSettings {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly identify: (pid: number) => ProcessIdentity | null;
  readonly endMarked: (mark: string) => void;
}

/** How often it is looked whether more comes after a process has ended: something it left behind can hold the pipe open for ever. */
const LOOK_AFTER_EXIT_MS = 1_000;
/** So often in vain, where something waits for whoever reads it: a disk that is full is waited for in the middle of an answer. */
const MOST_LOOKS = 10;
/** So often with nothing that waits to be read: the pipe was empty then, and what comes later is not from the process that has ended. */
const MOST_EMPTY = 2;
/** More than a pipe holds: nor is what comes after it. */
const MOST_IN_PIPE_BYTES = 2 ** 20;

/** Starts a program as the leader of a process group of its own. Throws `agent_unavailable`. */
export async function spawnInGroup(command: readonly string[], settings: SpawnSettings): Promise<Child> {
  const [program = '', ...args] = command;
  const mark = randomUUID();
  const child = spawnChild(program, args, { ...settings, env: { ...settings.env, [MARK]: mark } });
  // In this very tick: a child that ends at once stays visible as a zombie until the event loop gets to reap it.
  const identity = child.pid === undefined ? null : settings.identify(child.pid);
  await started(child, program, settings.cwd);
  if (identity === null) {
    child.kill('SIGKILL');
    throw new ThroughlineError('agent_unavailable', `${program} was started, and its process cannot be identified.`, {
      hint: 'Throughline needs /proc on Linux, and ps elsewhere',
    });
  }
  return asChild(child as Running, { ...identity, mark }, settings);
}

/** Some failures are thrown at once and not told later: an environment that is too large, an argument with a zero byte. */
function spawnChild(program: string, args: readonly string[], { cwd, env }: SpawnSettings): ChildProcess {
  try {
    return spawn(program, args, {
      cwd,
      env: { ...allowedEnvironment(process.env), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      shell: false,
    });
  } catch (error) {
    throw notStarted(program, cwd, error as NodeJS.ErrnoException);
  }
}

type Running = ChildProcess & { stdin: Writable; stdout: Socket; stderr: Socket };

/**
 * Ends the output of a process that has ended once nothing more comes of it, and what came was read. Of one that we have killed
 * nobody wants to know more. Returns what calls that off.
 */
function endWhenQuiet(output: Socket, killed: boolean): () => void {
  const atExit = output.bytesRead;
  let taken = atExit - output.readableLength;
  let [inVain, empty] = [0, 0];
  let timer: NodeJS.Timeout;
  const look = () => {
    const [before, { bytesRead, readableLength }] = [taken, output];
    taken = bytesRead - readableLength;
    inVain = taken > before ? 0 : inVain + 1;
    if (readableLength === 0) empty += 1;
    const most = readableLength > 0 && !killed ? MOST_LOOKS : 1;
    const more = inVain < most && empty < MOST_EMPTY && bytesRead - atExit <= MOST_IN_PIPE_BYTES;
    if (more) lookLater();
    else output.destroy();
  };
  // Not in the timer itself: where all of us stood still, what is in the pipe is read only after it.
  const lookLater = () => {
    timer = setTimeout(() => setImmediate(look), LOOK_AFTER_EXIT_MS);
  };
  lookLater();
  return () => clearTimeout(timer);
}

function asChild(
  child: Running,
  identity: ProcessIdentity & { readonly mark: string },
  { identify, endMarked }: SpawnSettings,
): Child {
  const { pid, mark } = identity;
  let alive = true;
  let killed = false;
  const forget = endWithUs(pid, () => endMarked(mark));
  // A program that has ended takes no input and gives no output: that is what `exited` says, and no error of its own.
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {});

  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('exit', (code, signal) => {
      alive = false;
      forget();
      // What the program started and left behind would go on working unseen, so it ends as well. While such a process
      // lives, the number of the group cannot be given to another; when none does, we signal nothing.
      if (identify(pid) === null) signalGroup(pid, 'SIGKILL');
      endMarked(mark);
      const stops = [child.stdout, child.stderr].map((output) => endWhenQuiet(output, killed));
      child.once('close', () => {
        for (const stop of stops) stop();
        resolve({ code, signal });
      });
    });
  });

  return {
    identity,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    exited,
    get alive() {
      return alive;
    },
    kill(signal) {
      if (!alive) return;
      killed ||= signal === 'SIGKILL';
      signalGroup(pid, signal);
    },
  };
}

function started(child: ChildProcess, program: string, cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => {
      child.on('error', () => {}); // later ones are failed signals, and `exited` tells what matters
      resolve();
    });
    child.once('error', (error: NodeJS.ErrnoException) => reject(notStarted(program, cwd, error)));
  });
}

function notStarted(program: string, cwd: string, cause: NodeJS.ErrnoException): ThroughlineError {
  const fail = (message: string, hint: string) => new ThroughlineError('agent_unavailable', message, { hint, cause });
  if (!existsSync(cwd))
    return fail(`${program} cannot be started: its working directory ${cwd} is gone.`, 'make it again');
  if (cause.code === 'ENOENT') {
    return fail(`The program ${program} was not found.`, 'install it, or set the agent\'s "command" to its whole path');
  }
  if (cause.code === 'EACCES') {
    return fail(
      `The program ${program} may not be executed.`,
      'check its permissions, or set the agent\'s "command" to another',
    );
  }
  return fail(`The program ${program} could not be started: ${cause.message}`, 'check the agent\'s "command"');
}
