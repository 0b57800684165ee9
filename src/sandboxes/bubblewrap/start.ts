import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import type { Server as Listener } from 'node:net';
import { Readable, type Writable } from 'node:stream';
import { ThroughlineError } from '../../core/errors.ts';
import { MARK } from '../../core/process.ts';
import type { HostProcesses } from '../../ports/processes.ts';
import type { Child } from '../../ports/sandbox.ts';
import { coverInherited, exported } from '../shared/isolated/launch.ts';
import { LISTEN } from '../shared/isolated/way-out.ts';
import type { AllowlistProxy } from '../shared/proxy.ts';
import { spawnInGroup } from '../shared/spawn.ts';
import type { ControlGroup } from './control-groups.ts';

/*
 * How a program is started in bubblewrap, one bubblewrap each:
 *
 *   sh (joins the control group) → exec bwrap → sh (hands over the socket of the proxy, sets limits) → exec the program
 *
 * - The environment of the program comes through a pipe: it may hold keys, and an agent may choose it. Only the program gets it: in
 *   bubblewrap LD_PRELOAD would be loaded outside of the sandbox, and NODE_OPTIONS would reach the channel to us, where a message that is
 *   not Node's ends our process.
 * - The way to the proxy: a short Node program inside listens on the loopback of the sandbox, sends us the socket, and ends. We accept
 *   connections on it from outside. So the proxy is ready before the program starts, and needs no file.
 * - A pipe reports the start of the program. If it ends without the word "started", standard error has the reason.
 */

export interface Start {
  readonly command: readonly string[];
  /** The arguments of bubblewrap, given the mark of the program, and which of `files` are open. */
  readonly words: (mark: string, files: readonly string[]) => readonly string[];
  /** Those that are readable files are passed to bubblewrap as open files, after the pipes. */
  readonly files: readonly string[];
  /** The environment of the program, except the mark. */
  readonly env: Readonly<Record<string, string>>;
  readonly filter: Buffer;
  /** Programs reach it on the loopback of the sandbox. */
  readonly proxy: AllowlistProxy | null;
  readonly group: ControlGroup | null;
  /** Limits of each process, and of all processes of our user in the sandbox. */
  readonly openFiles: number | null;
  readonly processes: number | null;
  readonly mark: string | undefined;
  readonly on: HostProcesses;
}

/** The descriptors of the pipes. A shell can close only those below ten. */
const [CHANNEL, WORDS, FILTER, INFO, STARTED, ENVIRONMENT] = [3, 4, 5, 6, 7, 8];
const START_MS = 60_000;
const MOST_SAID = 2_000;

const OUTSIDE = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 1; shift; done; shift; exec "$@"';

const INSIDE = `
fail() { echo "$1" >&${STARTED}; exit 126; }
[ -z "$1" ] || NODE_CHANNEL_FD=${CHANNEL} "$1" -e "$2" || fail network
exec ${CHANNEL}>&-
[ -z "$3" ] || ulimit -n "$3" || fail openFiles
[ -z "$4" ] || ulimit -u "$4" 2>/dev/null || ulimit -p "$4" || fail processes
shift 4
eval "$(command -p cat <&${ENVIRONMENT})"
case $1 in
*/*) [ -f "$1" ] && [ -x "$1" ] ;;
*) command -v "$1" >/dev/null ;;
esac || fail missing
echo started >&${STARTED}
exec "$@" ${[WORDS, FILTER, INFO, STARTED, ENVIRONMENT].map((number) => `${number}>&-`).join(' ')}`;

/** Throws `agent_unavailable` when it cannot be started. */
export async function startInBubblewrap(start: Start): Promise<Child> {
  const { command, proxy, group, mark, on } = start;
  let running: ChildProcess | null = null;
  const release = () => {
    proxy?.close();
    void group?.remove();
  };
  const launch = (env: Readonly<Record<string, string>>) => {
    running = launched(start, env[MARK] ?? '');
    return running;
  };
  try {
    const child = await spawnInGroup([command[0] ?? ''], { cwd: '/', env: {}, mark, processes: on, launch });
    const pid = await begun(child, running as unknown as ChildProcess, command[0] ?? '');
    void child.exited.then(release);
    return withOwnSignals(child, pid);
  } catch (error) {
    release();
    throw error;
  }
}

function launched(start: Start, mark: string): ChildProcess {
  const { words, env, filter, proxy } = start;
  const nothing = openSync('/dev/null', 'r');
  const files = start.files.flatMap(opened);
  try {
    const paths = files.map(({ path }) => path);
    const given = words(mark, paths);
    // Zero bytes separate the arguments.
    if (given.some((word) => word.includes('\0'))) throw new Error('a path has a zero byte');
    const variables = exported({ ...env, [MARK]: mark });
    const numbers = files.map(({ number }) => number);
    const stdio = [...Array(3).fill('pipe'), proxy === null ? nothing : 'ipc', ...Array(5).fill('pipe'), ...numbers];
    const child = spawn('/bin/sh', wordsOutside(start), {
      cwd: '/',
      env: { PATH: process.env.PATH ?? '', [MARK]: mark },
      detached: true,
      stdio: [...stdio, ...coverInherited(nothing, stdio.length)],
    });
    // A program may end before anybody reads: without a listener, Node drops its output.
    for (const output of [child.stdout, child.stderr]) output?.on('readable', () => {});
    for (const pipe of child.stdio.slice(WORDS)) pipe?.on('error', () => {}); // it has ended; `begun` notices that
    (child.stdio[WORDS] as Writable | undefined)?.end(given.map((word) => `${word}\0`).join(''));
    (child.stdio[FILTER] as Writable | undefined)?.end(filter);
    (child.stdio[ENVIRONMENT] as Writable | undefined)?.end(variables);
    child.once('message', (_, listener) => {
      proxy?.adopt(listener as Listener);
      child.send('', () => child.disconnect());
    });
    return child;
  } finally {
    for (const number of [nothing, ...files.map((file) => file.number)]) closeSync(number);
  }
}

function wordsOutside({ command, proxy, group, openFiles, processes }: Start): string[] {
  const listens = proxy === null ? ['', ''] : [process.execPath, LISTEN];
  const limits = [openFiles, processes].map((limit) => (limit === null ? '' : String(limit)));
  const inside = ['/bin/sh', '-c', INSIDE, 'sh', ...listens, ...limits, ...command];
  const pipes = ['--args', WORDS, '--seccomp', FILTER, '--info-fd', INFO].map(String);
  return ['-c', OUTSIDE, 'sh', ...(group?.procs ?? []), '--', 'bwrap', ...pipes, '--', ...inside];
}

/** Empty: it is not a file, or we may not read it. */
function opened(path: string): { readonly path: string; readonly number: number }[] {
  try {
    const number = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (fstatSync(number).isFile()) return [{ path, number }];
    closeSync(number);
  } catch {
    // Bubblewrap tries to bind it.
  }
  return [];
}

/** Waits until the program itself runs. Returns the pid of the first process of the sandbox; null: unknown. */
async function begun(child: Child, { stdio }: ChildProcess, program: string): Promise<number | null> {
  const timer = setTimeout(() => child.kill('SIGKILL'), START_MS);
  try {
    const [info, word] = await Promise.all([textOf(stdio[INFO]), firstLine(stdio[STARTED])]);
    if (word !== 'started') throw await failure(child, word, program);
    const [, pid] = /"child-pid": (\d+)/.exec(info) ?? [];
    return pid === undefined ? null : Number(pid);
  } finally {
    clearTimeout(timer);
  }
}

async function failure(child: Child, word: string, program: string): Promise<ThroughlineError> {
  const fail = (message: string, hint: string) => new ThroughlineError('agent_unavailable', message, { hint });
  child.stdin.end();
  const [errors] = await Promise.all([
    textOf(Readable.from(child.stderr)),
    textOf(Readable.from(child.stdout)),
    child.exited,
  ]);
  if (word === 'missing') {
    const hint =
      'If it is installed, add its folder to "sandbox.binds" of the settings, or give its full path (of an agent: "command" in its settings).';
    return fail(`The program ${program} was not found in the sandbox.`, hint);
  }
  const why = errors.trim().slice(0, MOST_SAID) || 'it has ended';
  return fail(
    `bubblewrap cannot start ${program}: ${why}.`,
    'Check "sandbox" of the settings, and the permissions of the folders it names.',
  );
}

/** SIGTERM goes to the group of the program. Sent to bubblewrap, it would end everything at once. */
function withOwnSignals(child: Child, pid: number | null): Child {
  return {
    ...child,
    get alive() {
      return child.alive;
    },
    kill(signal) {
      if (signal === 'SIGKILL' || pid === null) return child.kill(signal);
      if (!child.alive) return;
      try {
        // Bubblewrap waits for this process, so the pid is not reused while bubblewrap lives.
        process.kill(-pid, signal);
      } catch {
        // It is about to end.
      }
    },
  };
}

async function textOf(stream: unknown): Promise<string> {
  let text = '';
  try {
    for await (const chunk of stream as Readable) if (text.length < MOST_SAID) text += chunk;
  } catch {
    // What was read before counts.
  }
  return text;
}

async function firstLine(stream: unknown): Promise<string> {
  let text = '';
  for await (const chunk of stream as Readable) {
    text += chunk;
    if (text.includes('\n')) break;
  }
  return text.trim();
}
