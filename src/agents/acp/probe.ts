import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import type { Child } from '../../ports/sandbox.ts';
import type { Capabilities } from './capabilities.ts';
import { AcpConnection } from './connection.ts';
import { initialize, notLoggedIn, notStarted } from './open.ts';
import { isAuthRequired } from './refusal.ts';

export interface ProbeRequest {
  readonly name: string;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly openMs: number;
  /** How a person logs in; for messages. */
  readonly login: string;
  /** Ends it when aborted; left out: only `openMs` does. */
  readonly signal?: AbortSignal;
}

/** An agent that was started for a look. */
export interface Probing {
  readonly connection: AcpConnection;
  readonly can: Capabilities;
  /** What it last notified us of by this method; null: nothing. */
  heard(method: string): unknown;
}

/** Starts the agent outside of any sandbox, asks what it can do, and ends it. Nothing is opened. Throws `agent_unavailable`. */
export function probe(request: ProbeRequest): Promise<Capabilities> {
  return probing(request, async ({ can }) => can);
}

/** The same, with a look at it before it is ended. */
export async function probing<T>(request: ProbeRequest, look: (agent: Probing) => Promise<T>): Promise<T> {
  const child = bareChild(request.command, request.env);
  const stop = () => child.kill('SIGKILL');
  const late = setTimeout(stop, request.openMs);
  request.signal?.addEventListener('abort', stop, { once: true });
  if (request.signal?.aborted) stop();
  const heard = new Map<string, unknown>();
  const connection = new AcpConnection(child, {
    notification: (method, params) => void heard.set(method, params),
    answered: () => {},
    request: async () => {
      throw new Error('nothing is open');
    },
    room: () => undefined,
    gone: () => {},
  });
  try {
    const can = await initialize({ connection });
    return await look({ connection, can, heard: (method) => heard.get(method) ?? null });
  } catch (error) {
    if (isAuthRequired(error)) throw notLoggedIn(request, error);
    throw notStarted(request, { connection }, error);
  } finally {
    clearTimeout(late);
    request.signal?.removeEventListener('abort', stop);
    await connection.kill();
  }
}

/** What programs need to find themselves, and nothing more of our environment. */
const ALLOWED = ['PATH', 'HOME', 'TMPDIR', 'LANG'];

function bareChild([program = '', ...args]: readonly string[], env: Readonly<Record<string, string>>): Child {
  const ours = ALLOWED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]));
  const child = spawn(program, args, {
    cwd: tmpdir(),
    env: { ...Object.fromEntries(ours), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  child.stdin.on('error', () => {}); // it has ended; `exited` tells
  let alive = true;
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('error', () => resolve({ code: null, signal: null }));
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
