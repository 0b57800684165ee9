import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Hono } from 'hono';
import { ThroughlineError } from '../../core/errors.ts';
import type { Door } from './access/door.ts';
import type { AppEnv } from './app.ts';
import type { BeginStream } from './streams/event-stream.ts';

/** How many bytes of a stream may wait for its reader. */
const MOST_WAITING = 65_536;

const LIMITS = {
  headersTimeout: 15_000,
  requestTimeout: 60_000,
  keepAliveTimeout: 65_000,
  maxHeaderSize: 16_384,
  highWaterMark: MOST_WAITING,
};

/** A server that is not listening yet. Its door may depend on the port that it gets. */
export function serverFor(app: Hono<AppEnv>, door: () => Door): Server {
  const listener = getRequestListener((request, bindings) => {
    const outgoing = bindings.outgoing as ServerResponse; // these servers speak HTTP/1
    const begin: BeginStream = (headers, write) => {
      outgoing.writeHead(200, headers);
      write(outgoing);
      return RESPONSE_ALREADY_SENT;
    };
    return app.fetch(request, { door: door(), begin });
  });
  return createServer(LIMITS, (incoming, outgoing) => void listener(incoming, outgoing));
}

/** Listens, and resolves with the port. Throws `refused` when the address cannot be used. */
export async function listenOnPort(server: Server, host: string, port: number): Promise<number> {
  await listening(server, () => server.listen(port, host), `${host}:${port}`);
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

/** Throws `refused` when the port cannot be used. */
export async function checkFree(host: string, port: number): Promise<void> {
  const probe = createServer();
  await listenOnPort(probe, host, port);
  await new Promise((resolve) => probe.close(resolve));
}

/** Listens on a unix socket that only this user may open. Throws `conflict` when another process listens on it. */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  if (await answers(path)) throw new ThroughlineError('conflict', `Another process already listens on ${path}.`);
  try {
    rmSync(path, { force: true }); // of a server that was killed
  } catch (cause) {
    const hint = `Remove it and start again. (${(cause as Error).message})`;
    throw new ThroughlineError('refused', `Cannot replace ${path}.`, { hint, cause });
  }
  await listening(server, () => server.listen(path), path);
  chmodSync(path, 0o600);
}

/** A server that listens, and others that are to accept connections from the same socket. */
export interface Sharing {
  readonly listener: Server;
  readonly others: readonly Server[];
}

/** A program that sends every handle back, as often as it is told. */
const ECHO = "process.on('message', ([which, count], handle) => { while (count-- > 0) process.send(which, handle); });";
const SHARED_MS = 10_000;

/**
 * Node accepts one connection per handle in each iteration of its event loop. When iterations are long, because much is stored and
 * started, clients that connect in a burst wait for many of them. So several handles accept from one socket. A handle can only be copied
 * by sending it to another process: a small program sends it back. If that does not work, there is one handle. Never rejects.
 */
export async function shareListening(all: readonly Sharing[], signal: AbortSignal): Promise<void> {
  const child = startEcho();
  if (child === null) return;
  const left = all.map(({ others }) => [...others]);
  await new Promise<void>((resolve) => {
    AbortSignal.any([signal, AbortSignal.timeout(SHARED_MS)]).addEventListener('abort', () => resolve());
    child.once('error', () => resolve()).once('exit', () => resolve());
    child.on('message', (which, copy) => {
      // Without a handle, `listen` would choose a port.
      if (copy) left[Number(which)]?.pop()?.listen(copy);
      if (left.every((others) => others.length === 0)) resolve();
    });
    for (const [which, { listener, others }] of all.entries()) {
      // A copy of the server would accept connections in the other process; a copy of its handle does not.
      const { _handle: handle } = listener as unknown as { readonly _handle: Server };
      child.send([which, others.length], handle, () => {});
    }
  });
  child.removeAllListeners('message');
  child.kill('SIGKILL');
}

/** Null: the process cannot be started. */
function startEcho(): ChildProcess | null {
  const env = { ...process.env, NODE_OPTIONS: '' };
  try {
    const child = spawn(process.execPath, ['-e', ECHO], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], env });
    // Without a free file descriptor it has no channel, and emits an error a moment later.
    return child.on('error', () => {}).connected ? child : null;
  } catch {
    return null;
  }
}

function listening(server: Server, listen: () => void, where: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === 'EADDRINUSE';
      const hint = taken ? 'Choose another port with --port, or stop the program that uses it.' : String(cause.message);
      reject(
        new ThroughlineError('refused', taken ? `${where} is already in use.` : `Cannot listen on ${where}.`, {
          hint,
          cause,
        }),
      );
    };
    server.once('error', refuse);
    server.once('listening', () => {
      server.off('error', refuse);
      resolve();
    });
    listen();
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
