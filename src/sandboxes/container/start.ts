import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import type { Server as Listener, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import { identityOfLocal, MARK } from '../../core/process.ts';
import type { HostProcesses } from '../../ports/processes.ts';
import type { Child } from '../../ports/sandbox.ts';
import { coverInherited, exported } from '../shared/isolated/launch.ts';
import { LISTEN } from '../shared/isolated/way-out.ts';
import type { AllowlistProxy } from '../shared/proxy.ts';
import { spawnInGroup } from '../shared/spawn.ts';
import { UNSET } from './arguments.ts';
import { call, type EngineName, engineEnvironment, labelled, removeLabelled } from './engine.ts';
import { containerProcess, labelOf } from './processes.ts';

/*
 * How a program is started in a container of its own:
 *
 *   podman run → conmon → init → sh (prints a token, waits for the environment) → exec the program
 *
 * - The environment of the program comes by its input, before anything else: it may hold keys, and an agent may choose it. In the environment
 *   of podman itself, variables would change what podman does.
 * - While the shell waits, a short Node program enters the network of the container, listens there, sends us the socket, and ends. We accept
 *   connections on it from outside, so the image needs nothing for it.
 * - A guard process waits outside of all groups and containers. If our process ends without dismissing it, it removes the container.
 * - If the client of the engine dies, the container is removed by its label. We watch conmon ourselves: the client notices its death late.
 */

export interface Start {
  readonly engine: EngineName;
  readonly command: readonly string[];
  readonly cwd: string;
  /** The arguments up to the image, given the mark of the program. */
  readonly words: (mark: string) => readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly proxy: AllowlistProxy | null;
  /** The mark of the program that this one is a part of, and its own id. */
  readonly part: { readonly mark: string; readonly id: string } | null;
  readonly pidFiles: { readonly first: string; readonly conmon: string } | null;
  readonly on: HostProcesses;
}

const START_MS = 60_000;
const LOOK_MS = 1_000;
const SEEN_MS = 20;
const MOST_LOOKS = 6;
/** The exit code of the client when it fails itself. A program may have this code, too. */
const FAILED = 125;

const INSIDE = `
token=$1 size=$2 cwd=$3
shift 3
echo "$token"
echo "$token" >&2
unset ${UNSET.join(' ')}
eval "$(command -p head -c "$size")"
fail() { echo "$1"; exit 126; }
cd -- "$cwd" || fail folder
case $1 in
*/*) [ -f "$1" ] && [ -x "$1" ] ;;
*) command -v "$1" >/dev/null ;;
esac || fail missing
echo started
exec "$@"`;

/** Reads the pid of the client, then a word if all is well. Without the word, it removes the container until the client has ended as well. */
const GUARD = `
read -r client
if read -r word; then exit 0; fi
engine=$1 label=$2 mark=$3 tries=0
remove() { for id in $("$engine" ps --all --quiet --filter "label=$label"); do "$engine" kill "$id"; "$engine" rm --force "$id"; done; }
remove
while [ $tries -lt 100 ] && tr '\\0' '\\n' < "/proc/$client/environ" | grep -qxF "$mark"; do
  tries=$((tries + 1)); sleep 0.2; remove
done
remove`;

/** Throws `agent_unavailable` when it cannot be started. */
export async function startInContainer(start: Start): Promise<Child> {
  const { command, engine, part, proxy, on } = start;
  const token = randomUUID();
  const variables = exported(start.env);
  const launch = (env: Readonly<Record<string, string>>) => {
    running = launched(start, env[MARK] ?? '', token, Buffer.byteLength(variables));
    return running.client;
  };
  let running = null as { client: ChildProcess; guard: Guard } | null;
  const inner = await spawnInGroup([engine], { cwd: '/', env: {}, mark: part?.mark, processes: on, launch });
  const { client, guard } = running ?? failed('nothing was launched');
  const child = contained(inner, start, guard);
  const timer = setTimeout(() => child.kill('SIGKILL'), START_MS);
  try {
    await begun(client, start, token, variables);
    lookAfterConmon(child, start);
    return child;
  } catch (error) {
    child.kill('SIGKILL');
    await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    proxy?.close();
    throw error instanceof ThroughlineError ? error : notStarted(command[0] ?? '', engine, String(error));
  } finally {
    clearTimeout(timer);
    if (start.pidFiles !== null) for (const file of Object.values(start.pidFiles)) rmSync(file, { force: true });
  }
}

interface Guard {
  /** Ends it: the container is gone. */
  dismiss(): void;
  /** Lets it remove the container, although our process still runs. */
  alarm(): void;
}

function launched(start: Start, mark: string, token: string, size: number): { client: ChildProcess; guard: Guard } {
  const { engine, words, command, cwd } = start;
  const nothing = openSync('/dev/null', 'r');
  const inherited = coverInherited(nothing, 3);
  const env = { ...engineEnvironment(), [MARK]: mark };
  const inside = ['-c', INSIDE, 'sh', token, String(size), cwd, ...command];
  try {
    const client = spawn(engine, [...words(mark), ...inside], {
      ...{ cwd: '/', env, detached: true, stdio: ['pipe', 'pipe', 'pipe', ...inherited] },
    });
    // A program may end before anybody reads: without a listener, Node drops its output.
    for (const output of [client.stdout, client.stderr]) output?.on('readable', () => {});
    return { client, guard: guardOf(start, mark, client.pid ?? 0, [...inherited]) };
  } finally {
    closeSync(nothing);
  }
}

/** It has no mark: ending the programs that we have started must not end their guard. */
function guardOf({ engine, part }: Start, mark: string, client: number, inherited: (number | 'ignore')[]): Guard {
  const label = labelOf({ mark, part: part?.id ?? null });
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', engine, label, `${MARK}=${mark}`], {
    ...{ cwd: '/', env: engineEnvironment(), detached: true, stdio: ['pipe', 'ignore', 'ignore', ...inherited] },
  });
  guard.on('error', () => {}); // without a guard, the label still finds the container
  guard.unref();
  const input = guard.stdin as Socket | null;
  input?.on('error', () => {});
  input?.unref();
  input?.write(`${client}\n`);
  return { dismiss: () => void input?.end('well\n'), alarm: () => void input?.end() };
}

/** A child that ends with its container. */
function contained(inner: Child, { engine, part, proxy }: Start, guard: Guard): Child {
  const client = identityOfLocal(inner.identity) ?? failed('it is of another kind');
  const mark = client.mark ?? part?.mark ?? '';
  const identity = { engine, mark, part: part?.id ?? null, client };
  let killed = false;
  const exited = inner.exited.then(async (exit) => {
    proxy?.close();
    const isClean = !killed && exit.signal === null && exit.code !== FAILED;
    try {
      if (!isClean) await removeLabelled(engine, labelOf(identity));
      guard.dismiss();
    } catch {
      guard.alarm();
    }
    return exit;
  });
  return {
    ...inner,
    identity: containerProcess(identity),
    exited,
    get alive() {
      return inner.alive;
    },
    kill(signal) {
      killed ||= signal === 'SIGKILL' && inner.alive;
      inner.kill(signal); // the client forwards SIGTERM
    },
  };
}

async function begun(client: ChildProcess, start: Start, token: string, variables: string): Promise<void> {
  const { engine, command, cwd } = start;
  const [stdout, stderr] = [client.stdout as Socket, client.stderr as Socket];
  const program = command[0] ?? '';
  const [word, errors] = await Promise.all([lineOf(stdout), linesUntil(stderr, token)]);
  if (word !== token) throw notStarted(program, engine, errors.trim() || 'it has ended');
  if (start.proxy !== null) await listenInside(start.proxy, await firstProcess(start, client));
  client.stdin?.write(variables);
  const result = await lineOf(stdout);
  if (result === 'started') return;
  if (result === 'folder') throw notStarted(program, engine, `its working directory ${cwd} is not in the container`);
  if (result !== 'missing') throw notStarted(program, engine, 'it has ended');
  throw new ThroughlineError('agent_unavailable', `The program ${program} was not found in the container.`, {
    hint: 'Install it in the image, or add its folder to "sandbox.binds" of the settings.',
  });
}

/** Reads one line, and leaves the rest in the stream. If the stream ends before, all that it had. */
async function lineOf(stream: Socket): Promise<string> {
  let seen = Buffer.alloc(0);
  for (;;) {
    const chunk = stream.read() as Buffer | null;
    if (chunk === null && (stream.readableEnded || stream.destroyed)) return seen.toString();
    if (chunk === null) {
      await moreFrom(stream);
      continue;
    }
    seen = Buffer.concat([seen, chunk]);
    const end = seen.indexOf('\n');
    if (end === -1) continue;
    if (end + 1 < seen.length) stream.unshift(seen.subarray(end + 1));
    return seen.toString('utf8', 0, end);
  }
}

function moreFrom(stream: Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const event of ['readable', 'end', 'close']) stream.off(event, done);
      resolve();
    };
    for (const event of ['readable', 'end', 'close']) stream.on(event, done);
  });
}

async function linesUntil(stream: Socket, token: string): Promise<string> {
  for (let lines = ''; ; ) {
    const line = await lineOf(stream);
    if (line === token) return lines;
    if (stream.readableEnded || stream.destroyed) return `${lines}${line}`;
    lines += `${line}\n`;
  }
}

async function firstProcess({ engine, pidFiles, part }: Start, client: ChildProcess): Promise<number> {
  if (pidFiles !== null) return Number(readFileSync(pidFiles.first, 'utf8'));
  const mark = client.spawnargs.find((word) => word.startsWith(`${MARK}=`))?.slice(MARK.length + 1) ?? '';
  const label = labelOf({ mark, part: part?.id ?? null });
  // The daemon may show the pid only after the program has printed something.
  for (const until = performance.now() + START_MS; performance.now() < until; await delay(SEEN_MS)) {
    const [id] = await labelled(engine, label);
    const pid = id === undefined ? 0 : Number(await call(engine, ['inspect', '--format', '{{.State.Pid}}', id]));
    if (pid > 0) return pid;
  }
  return 0;
}

/** Gives the proxy a socket in the network of a container. `pid`: the first process of the container. */
async function listenInside(proxy: AllowlistProxy, pid: number): Promise<void> {
  if (!Number.isInteger(pid) || pid < 2) failed('the container has no process');
  const user = process.getuid?.() === 0 ? [] : [`--user=/proc/${pid}/ns/user`, '--preserve-credentials'];
  const words = [...user, `--net=/proc/${pid}/ns/net`, '--', process.execPath, '-e', LISTEN];
  const helper = spawn('nsenter', words, {
    ...{ cwd: '/', env: { PATH: process.env.PATH ?? '' }, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let said = '';
  helper.stderr?.on('data', (chunk) => {
    said += chunk;
  });
  helper.once('error', reject);
  helper.once('message', (_, listener) => {
    proxy.adopt(listener as Listener);
    helper.send('', () => helper.disconnect());
    resolve();
  });
  helper.once('close', () => reject(new Error(`the network of the container cannot be entered (${said.trim()})`)));
  await promise;
}

/** Without conmon, nobody reads the output of the program, and the client waits for a long time. */
function lookAfterConmon(child: Child, { pidFiles, on }: Start): void {
  if (pidFiles === null) return;
  const [conmon, first] = [pidFiles.conmon, pidFiles.first].map((file) =>
    on.identify(Number(readFileSync(file, 'utf8'))),
  );
  const isDead = (one: typeof conmon) => !one || on.status(one) === 'dead';
  let looks = 0;
  const timer = setInterval(() => {
    if (!isDead(conmon)) return;
    looks += 1;
    // When the program has ended, conmon ends as well, and the client after it has removed the container.
    if (!isDead(first) || looks > MOST_LOOKS) child.kill('SIGKILL');
  }, LOOK_MS);
  timer.unref();
  void child.exited.then(() => clearInterval(timer));
}

function notStarted(program: string, engine: EngineName, why: string): ThroughlineError {
  return new ThroughlineError('agent_unavailable', `${engine} cannot start ${program}: ${why}.`, {
    hint: 'Check "sandbox" of the settings, and the permissions of the folders it names.',
  });
}

function failed(why: string): never {
  throw new Error(why);
}
