import { setTimeout as sleep } from 'node:timers/promises';
import { ThroughlineError } from '../../../core/errors.ts';
import { starterOf } from '../../../core/process.ts';
import type { HostProcesses } from '../../../ports/processes.ts';
import type { Child, Sandboxes, SandboxProcess } from '../../../ports/sandbox.ts';
import type { RemoteMachine, RemoteProgram } from './machine.ts';
import {
  endScript,
  FIRST,
  markedScript,
  type RemoteIdentity,
  type Started,
  signalScript,
  startScript,
  statusScript,
} from './program-scripts.ts';

export interface ProgramSettings {
  readonly machine: RemoteMachine;
  /** The kind of stored processes: `ssh`. */
  readonly kind: string;
  readonly place: string;
  /** Processes of this machine, which start the programs there. */
  readonly processes: Pick<HostProcesses, 'newMark' | 'status'>;
}

/** More than the first line of a runner can have. */
const MOST_FIRST_LINE = 10_000;
/** After a lost connection: how often we try to end what ran there. */
const AGAIN_MS = 500;
/** How long a watchdog takes to end everything, after it has noticed that our heartbeats stopped. */
const WATCHDOG_MS = 5_000;

/** Programs on another machine, found again by their identity on any connection. */
export class RemotePrograms implements Pick<Sandboxes, 'status' | 'end' | 'orphans'> {
  readonly #settings: ProgramSettings;

  constructor(settings: ProgramSettings) {
    this.#settings = settings;
  }

  /** Throws `agent_unavailable`. */
  async start(program: Omit<Started, 'mark' | 'isPart' | 'silenceSeconds'>, partOf?: SandboxProcess): Promise<Child> {
    const { machine, processes } = this.#settings;
    checkNames(program.env);
    const whole = partOf && this.#identityOf(partOf)?.mark;
    const mark = whole ?? processes.newMark();
    const { silenceSeconds } = machine;
    const script = startScript({ ...program, mark, isPart: whole !== undefined, silenceSeconds });
    const running = await machine.start(script);
    const { line, rest } = await firstLine(running.stdout);
    const identity = parseFirst(line);
    if (identity === null) throw notStarted(line, program, machine.name, await running.ended);
    return this.#child({ ...running, stdout: rest }, whole === undefined ? { ...identity, mark } : identity);
  }

  async status(process: SandboxProcess): Promise<'alive' | 'dead' | 'unknown'> {
    const identity = this.#identityOf(process);
    const printed = identity && (await this.#ask(statusScript(identity)));
    if (printed === 'over') return 'dead';
    return printed === 'alive' || printed === 'dead' ? printed : 'unknown';
  }

  async end(process: SandboxProcess): Promise<'ended' | 'unknown'> {
    const identity = this.#identityOf(process);
    const printed = identity && (await this.#ask(endScript(identity)));
    return printed === 'ended' || printed === 'over' ? 'ended' : 'unknown';
  }

  async orphans(): Promise<SandboxProcess[]> {
    const { place, processes } = this.#settings;
    const lines = (await this.#ask(markedScript()))?.split('\n') ?? [];
    const marked = lines.map((line) => {
      const [pid, started = '', boot = '', namespace = '', mark = ''] = line.split(' ');
      return { pid: Number(pid), started, boot, namespace, mark };
    });
    return [...Map.groupBy(marked, ({ mark }) => mark)].flatMap(([mark, found]) => {
      const starter = starterOf(mark);
      if (starter?.place !== place || processes.status(starter.process) !== 'dead') return [];
      // The oldest is the program itself. If a tool was ended first, the program would continue with its result.
      const [oldest] = found.toSorted((a, b) => Number(a.started) - Number(b.started) || a.pid - b.pid);
      return oldest === undefined ? [] : [this.#processOf(oldest)];
    });
  }

  /** What the script prints. Null: the machine cannot be reached. */
  async #ask(script: string): Promise<string | null> {
    try {
      return (await this.#settings.machine.run(script)).stdout.toString().trim();
    } catch (error) {
      if (error instanceof ThroughlineError) return null;
      throw error;
    }
  }

  #processOf(identity: RemoteIdentity): SandboxProcess {
    const { kind, place, machine } = this.#settings;
    return { kind, id: JSON.stringify({ place, ...identity }), label: `process ${identity.pid} on ${machine.name}` };
  }

  /** Null: it is of another kind or machine, or not readable. */
  #identityOf({ kind, id }: SandboxProcess): RemoteIdentity | null {
    if (kind !== this.#settings.kind) return null;
    try {
      const { place, ...identity } = JSON.parse(id) as RemoteIdentity & { place: string };
      return place === this.#settings.place && Number.isSafeInteger(identity.pid) ? identity : null;
    } catch {
      return null;
    }
  }

  #child(running: RemoteProgram, identity: RemoteIdentity): Child {
    const process = this.#processOf(identity);
    const { machine } = this.#settings;
    let alive = true;
    const exited = running.ended.then(async (code) => {
      alive = false;
      if (code === null) await this.#endLost(process);
      if (code === null || code <= 128) return { code, signal: null };
      return { code: null, signal: SIGNALS[code - 128] ?? `signal ${code - 128}` };
    });
    return {
      identity: process,
      stdin: running.stdin,
      stdout: running.stdout,
      stderr: running.stderr,
      exited,
      get alive() {
        return alive;
      },
      kill(signal) {
        if (!alive) return;
        // If the machine cannot be reached, its watchdog ends the program.
        void machine.run(signalScript(identity, signal === 'SIGTERM' ? 'TERM' : 'KILL')).catch(() => {});
      },
    };
  }

  /** After a lost connection the program may still run. Returns when we have ended it on another connection, or its watchdog must have. */
  async #endLost(process: SandboxProcess): Promise<void> {
    const until = performance.now() + this.#settings.machine.silenceSeconds * 1_000 + WATCHDOG_MS;
    while ((await this.end(process)) !== 'ended' && performance.now() < until) await sleep(AGAIN_MS);
  }
}

const SIGNALS: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  6: 'SIGABRT',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  15: 'SIGTERM',
};

/** A shell can set no other names. */
function checkNames(env: Readonly<Record<string, string>>): void {
  const wrong = Object.keys(env).find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  if (wrong === undefined) return;
  throw new ThroughlineError('agent_unavailable', `${JSON.stringify(wrong)} is not the name of a variable.`, {
    hint: 'Correct the "env" of the agent in the settings.',
  });
}

/** Takes the first line off an output. `rest`: the output after it. */
async function firstLine(
  output: AsyncIterable<Uint8Array>,
): Promise<{ line: string; rest: AsyncIterable<Uint8Array> }> {
  const chunks = output[Symbol.asyncIterator]();
  let seen = Buffer.alloc(0);
  let end = -1;
  while (end === -1 && seen.length < MOST_FIRST_LINE) {
    const { value, done } = await chunks.next();
    if (done) break;
    seen = Buffer.concat([seen, value]);
    end = seen.indexOf('\n');
  }
  const line = seen.toString('utf8', 0, end === -1 ? seen.length : end);
  async function* rest() {
    if (end !== -1 && end + 1 < seen.length) yield seen.subarray(end + 1);
    yield* { [Symbol.asyncIterator]: () => chunks };
  }
  return { line, rest: rest() };
}

function parseFirst(line: string): RemoteIdentity | null {
  const [first, pid = '', started = '', boot = '', namespace = ''] = line.split(' ');
  if (first !== FIRST.started || !/^\d+$/.test(pid) || !started || !boot || !namespace) return null;
  return { pid: Number(pid), started, boot, namespace };
}

function notStarted(
  line: string,
  { command: [program = ''], cwd }: Pick<Started, 'command' | 'cwd'>,
  machine: string,
  code: number | null,
): ThroughlineError {
  const fail = (message: string, hint: string) => new ThroughlineError('agent_unavailable', message, { hint });
  if (line === FIRST.noDirectory) {
    return fail(
      `Cannot start ${program}: its working directory ${cwd} no longer exists on ${machine}.`,
      'Create it again.',
    );
  }
  if (line === `${FIRST.noProgram} setsid`) return fail(`${machine} has no "setsid".`, 'Install util-linux there.');
  if (line === FIRST.noProgram) {
    const hint = 'Install it there, or give its full path (of an agent: "command" in its settings).';
    return fail(`The program ${program} was not found on ${machine}.`, hint);
  }
  const why = code === null ? 'the connection was lost' : `it ended with ${code}`;
  return fail(`Cannot start ${program} on ${machine}: ${why}.`, 'Check that machine, and try again.');
}
