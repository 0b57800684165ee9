import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Child } from '../../../ports/sandbox.ts';
import { isAuthRequired } from '../connection/answers.ts';
import type { Capabilities } from '../connection/capabilities.ts';
import { AcpConnection } from '../connection/connection.ts';
import { initialize, notLoggedIn, notStarted, stopLate } from '../open/open.ts';

export interface ProbeRequest {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly openMs: number;
  /** How a person logs in; for messages. */
  readonly login: string;
  /** Where an empty folder is made for it to run in, which is gone afterwards. It must be one of our own. */
  readonly scratch: string;
  /** Ends it when aborted; left out: only `openMs` does. */
  readonly signal?: AbortSignal;
}

/** An agent that was started for a look. */
export interface Probing {
  /** The folder that it runs in. */
  readonly folder: string;
  readonly connection: AcpConnection;
  readonly can: Capabilities;
  /** What it last notified us of by this method, or will within so long; null: nothing. */
  hear(method: string, ms: number): Promise<unknown>;
}

/** Starts the agent outside of any sandbox, asks what it can do, and ends it. Nothing is opened. Throws `agent_unavailable`. */
export function probe(request: ProbeRequest): Promise<Capabilities> {
  return probing(request, async ({ can }) => can);
}

/** The same, with a look at it before it is ended. */
export async function probing<T>(request: ProbeRequest, look: (agent: Probing) => Promise<T>): Promise<T> {
  const folder = await emptyFolder(request);
  try {
    return await probingIn(folder, request, look);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Agents obey what lies in the folder that they are started in, and above it: never one where others may put something. */
async function emptyFolder({ name, scratch }: ProbeRequest): Promise<string> {
  try {
    await mkdir(scratch, { recursive: true, mode: 0o700 });
    return await mkdtemp(join(scratch, 'probe-'));
  } catch (cause) {
    throw new ThroughlineError('agent_unavailable', `${name} cannot be started: there is no folder to do so in.`, {
      hint: `Make sure that ${scratch} can be written.`,
      cause,
    });
  }
}

async function probingIn<T>(folder: string, request: ProbeRequest, look: (agent: Probing) => Promise<T>): Promise<T> {
  const child = bareChild(folder, request.command, request.env);
  const heard = new Notices();
  const connection = new AcpConnection(child, {
    notification: (method, params) => heard.add(method, params),
    answered: () => {},
    request: async () => {
      throw new Error('nothing is open');
    },
    room: () => undefined,
    gone: () => {},
  });
  const stop = () => child.kill('SIGKILL');
  const late = stopLate(connection, request.openMs);
  request.signal?.addEventListener('abort', stop, { once: true });
  if (request.signal?.aborted) stop();
  try {
    const can = await initialize(connection);
    return await look({ folder, connection, can, hear: (method, ms) => heard.hear(method, ms) });
  } catch (error) {
    if (isAuthRequired(error)) throw notLoggedIn(request, error);
    throw notStarted(request, connection, error, 'did not answer as an agent does');
  } finally {
    clearTimeout(late);
    request.signal?.removeEventListener('abort', stop);
    await connection.kill();
  }
}

/** What an agent says unasked: by method the last of it, and of no more methods than one would look at. */
class Notices {
  readonly #last = new Map<string, unknown>();
  readonly #waiting = new Map<string, () => void>();

  add(method: string, params: unknown): void {
    if (this.#last.size < MOST_METHODS || this.#last.has(method)) this.#last.set(method, params);
    this.#waiting.get(method)?.();
  }

  async hear(method: string, ms: number): Promise<unknown> {
    if (!this.#last.has(method)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.set(method, resolve);
      const late = setTimeout(resolve, ms);
      await promise;
      clearTimeout(late);
    }
    return this.#last.get(method) ?? null;
  }
}

const MOST_METHODS = 100;

/** How long output may still come after it has ended: something it left behind can hold the pipe open for ever. */
const OUTPUT_AFTER_EXIT_MS = 1_000;

/** What programs need to find themselves, and nothing more of our environment. */
const ALLOWED = ['PATH', 'HOME', 'TMPDIR', 'LANG'];

function bareChild(
  cwd: string,
  [program = '', ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
): Child {
  const ours = ALLOWED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
  const child = spawn(program, args, {
    cwd,
    env: { ...Object.fromEntries(ours), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  child.stdin.on('error', () => {}); // it has ended; `exited` tells
  let alive = true;
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('error', () => resolve({ code: null, signal: null }));
    child.once('exit', () => {
      const late = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, OUTPUT_AFTER_EXIT_MS);
      child.once('close', () => clearTimeout(late));
    });
    child.once('close', (code, signal) => resolve({ code, signal }));
  }).then((end) => {
    alive = false;
    return end;
  });
  return {
    identity: { pid: child.pid ?? 0, started: '', boot: '', namespace: '' },
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    exited,
    get alive() {
      return alive;
    },
    kill: (signal) => {
      if (!alive || child.pid === undefined) return;
      try {
        process.kill(-child.pid, signal);
      } catch {
        // It ended in this moment.
      }
    },
  };
}
