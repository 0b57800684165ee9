import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { ThroughlineError } from '../../core/errors.ts';
import { localProcess, MARK, type ProcessIdentity } from '../../core/process.ts';
import type { HostProcesses } from '../../ports/processes.ts';
import type { ByteSink, Child } from '../../ports/sandbox.ts';

export interface SpawnSettings {
  readonly cwd: string;
  /** The whole environment of the program, except the mark. */
  readonly env: Readonly<Record<string, string>>;
  /** The mark of the process that it is a part of; left out: it gets its own. */
  readonly mark?: string | undefined;
  readonly processes: HostProcesses;
  /** Starts the program in another way, with this environment, as the leader of a process group. Left out: as a plain program. */
  readonly launch?: (env: Readonly<Record<string, string>>) => ChildProcess;
}

/** How often we look for more output after a process has ended: a process that it left behind can hold the pipe open for ever. */
const LOOK_AFTER_EXIT_MS = 1_000;
/** Looks without progress before unread output is dropped. The reader may be waiting for a full disk. */
const MOST_LOOKS = 10;
/** Looks at an empty pipe before it is closed: later output is not from the ended process. */
const MOST_EMPTY = 2;
/** More than a pipe holds: output beyond this is not from the ended process either. */
const MOST_IN_PIPE_BYTES = 2 ** 20;

/** Starts a program as the leader of a process group of its own. Throws `agent_unavailable`. */
export async function spawnInGroup(command: readonly string[], settings: SpawnSettings): Promise<Child> {
  const [program = '', ...args] = command;
  // In the environment before anything can be stored: if we are killed now, the mark alone shows whose program this was.
  const mark = settings.mark ?? settings.processes.newMark();
  const child = spawnChild(program, args, { ...settings, env: { ...settings.env, [MARK]: mark } });
  // In this tick: a child that ends at once stays visible as a zombie until the event loop reaps it.
  const identity = child.pid === undefined ? null : settings.processes.identify(child.pid);
  await started(child, program, settings.cwd);
  if (identity === null) {
    child.kill('SIGKILL');
    throw new ThroughlineError('agent_unavailable', `${program} was started, but its process cannot be identified.`, {
      hint: 'Throughline needs /proc on Linux, and "ps" elsewhere.',
    });
  }
  // A part shares the mark of the whole. Its identity has no mark, so that ending the part does not end the whole.
  return asChild(child as Running, settings.mark === undefined ? { ...identity, mark } : identity, settings.processes);
}

/** Some failures are thrown at once instead of emitted: an environment that is too large, an argument with a zero byte. */
function spawnChild(program: string, args: readonly string[], { cwd, env, launch }: SpawnSettings): ChildProcess {
  try {
    if (launch !== undefined) return launch(env);
    return spawn(program, args, {
      cwd,
      env,
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
 * Closes the output of an ended process once nothing more comes and everything was read. After a kill, unread output is dropped.
 * Returns a function that cancels this.
 */
function endWhenQuiet(output: Socket, killed: boolean): () => void {
  const atExit = output.bytesRead;
  let taken = atExit - output.readableLength;
  let [withoutProgress, empty] = [0, 0];
  let timer: NodeJS.Timeout;
  const look = () => {
    const [before, { bytesRead, readableLength }] = [taken, output];
    taken = bytesRead - readableLength;
    withoutProgress = taken > before ? 0 : withoutProgress + 1;
    if (readableLength === 0) empty += 1;
    const most = readableLength > 0 && !killed ? MOST_LOOKS : 1;
    const more = withoutProgress < most && empty < MOST_EMPTY && bytesRead - atExit <= MOST_IN_PIPE_BYTES;
    if (more) lookLater();
    else output.destroy();
  };
  // Not in the timer itself: if our process was suspended, the pipe is read only after the timer.
  const lookLater = () => {
    timer = setTimeout(() => setImmediate(look), LOOK_AFTER_EXIT_MS);
  };
  lookLater();
  return () => clearTimeout(timer);
}

function asChild(
  child: Running,
  identity: ProcessIdentity,
  { identify, hasEnded, endMarked, endMarkedNow }: HostProcesses,
): Child {
  const { pid, mark } = identity;
  let alive = true;
  let killed = false;
  const forget = endWithUs(pid, () => {
    if (mark !== undefined) endMarkedNow(mark);
  });
  // Reading from or writing to an ended program is no error: `exited` reports the end.
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => {});

  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('exit', (code, signal) => {
      alive = false;
      forget();
      // End what the program left running. While such a process lives, the number of the group is not reused; if there is
      // none, the signal reaches no process.
      if (identify(pid) === null) signalGroup(pid, 'SIGKILL');
      // This fails when no file descriptor is free; `doctor` finds the processes later.
      const rest = mark === undefined ? Promise.resolve() : endMarked(mark).catch(() => {});
      const outputs = [child.stdout, child.stderr];
      const stops = outputs.map((output) => endWhenQuiet(output, killed));
      // Not the event `close` of the process: it also waits for other pipes, and is not emitted if we have closed a channel.
      void Promise.all(outputs.map(closed)).then(async () => {
        for (const stop of stops) stop();
        await rest;
        resolve({ code, signal });
      });
    });
  });

  return {
    identity: localProcess(identity),
    stdin: inputOf(child.stdin),
    stdout: child.stdout,
    stderr: child.stderr,
    exited,
    get alive() {
      // If another process has killed it, the event of its exit comes milliseconds later. A prompt must not be sent to it meanwhile.
      return alive && !hasEnded(identity);
    },
    kill(signal) {
      if (!alive) return;
      killed ||= signal === 'SIGKILL';
      signalGroup(pid, signal);
    },
  };
}

/**
 * `end` closes the pipe at once, so that the program can exit while we store the turn. Node itself would close it only in the next
 * turn of the event loop.
 */
function inputOf(stdin: Writable): ByteSink {
  return {
    write: (bytes, taken) => stdin.write(bytes, taken),
    end() {
      if (stdin.writableLength === 0) stdin.destroy();
      else stdin.end();
    },
  };
}

function closed(stream: Socket): Promise<void> {
  if (stream.closed) return Promise.resolve();
  return new Promise((resolve) => void stream.once('close', resolve));
}

function started(child: ChildProcess, program: string, cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => {
      child.on('error', () => {}); // later errors are failed signals; `exited` reports the end
      resolve();
    });
    child.once('error', (error: NodeJS.ErrnoException) => reject(notStarted(program, cwd, error)));
  });
}

function notStarted(program: string, cwd: string, cause: NodeJS.ErrnoException): ThroughlineError {
  const fail = (message: string, hint: string) => new ThroughlineError('agent_unavailable', message, { hint, cause });
  if (!existsSync(cwd))
    return fail(`Cannot start ${program}: its working directory ${cwd} no longer exists.`, 'Create it again.');
  if (cause.code === 'ENOENT') {
    return fail(
      `The program ${program} was not found.`,
      'Install it, or give its full path (of an agent: "command" in its settings).',
    );
  }
  if (cause.code === 'EACCES') {
    return fail(
      `The program ${program} is not executable.`,
      'Check its permissions, or name another program (of an agent: "command" in its settings).',
    );
  }
  return fail(`Cannot start ${program}: ${cause.message}`, 'Check the agent\'s "command".');
}

/** Signals a whole process group. Ignores a group that has ended or is not ours. */
function signalGroup(leader: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-leader, signal);
  } catch {
    // ESRCH: the group is empty. EPERM: it is not ours.
  }
}

/** Running groups by their leader. The function ends what the program started outside of its group. */
const running = new Map<number, () => void>();

/**
 * Ends the group when our own process exits. After SIGKILL this cannot run; then only the program's input ends. Returns a function
 * that undoes this.
 */
function endWithUs(leader: number, endRest: () => void): () => void {
  if (running.size === 0) process.once('exit', endAll);
  running.set(leader, endRest);
  return () => {
    running.delete(leader);
    if (running.size === 0) process.off('exit', endAll);
  };
}

function endAll(): void {
  for (const [leader, endRest] of running) {
    signalGroup(leader, 'SIGKILL');
    endRest();
  }
}
