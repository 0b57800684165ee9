import type { Server } from 'node:http';
import { ThroughlineError } from '../../core/errors.ts';
import type { Engine } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { Tasks } from '../../ports/tasks.ts';
import { type Door, loopbackDoor, publicDoor, socketDoor } from './access/door.ts';
import { type Link, SignIn } from './access/sign-in.ts';
import { type AppParts, createApp } from './app.ts';
import { listenOnPort, listenOnSocket, serverFor } from './listen.ts';
import { Refusal } from './refusal.ts';
import { STREAM, type StreamSettings } from './streams/event-stream.ts';
import type { Log } from './telemetry/log.ts';
import type { Metrics } from './telemetry/metrics.ts';

export interface ServerOptions {
  readonly engine: Engine;
  /** Closed before the engine; left out: this server has none. */
  readonly tasks?: Tasks;
  readonly keys: Pick<Store, 'findKey'>;
  readonly token: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly version: string;
  /** The path of the unix socket; null: none. */
  readonly socket: string | null;
  readonly host: string;
  readonly port: number;
  /** The public address, through a reverse proxy that handles TLS; left out: for this machine only. */
  readonly publicUrl?: string;
  readonly stream?: Partial<StreamSettings>;
  readonly mostReaders?: number;
  readonly now?: () => number;
}

export interface RunningServer {
  /** Without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** A link that signs a browser in, once. */
  newLink(): string;
  /**
   * Accepts no new work, lets running turns end within `graceMs` and interrupts the rest. Queued turns wait for the next
   * server. Readers see all of it. Idempotent.
   */
  close(options?: { graceMs?: number }): Promise<void>;
}

/** Allows nothing. */
const CLOSED_DOOR: Door = { hosts: new Set(), origins: new Set(), token: false, secure: false, cookie: '' };
const LOOPBACK = ['127.0.0.1', '::1', 'localhost'];

/** Starts the server: a unix socket and TCP, one app. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { engine, token, host, now = Date.now } = options;
  const publicUrl = checkReach(host, options.publicUrl);
  const signIn = new SignIn(token, now);
  const draining = new AbortController();
  const shutdown = new AbortController();
  const parts: AppParts = {
    ...options,
    keeper: { token, signIn, keys: options.keys, owner: engine.owner, now },
    stream: { ...STREAM, ...options.stream },
    mostReaders: options.mostReaders ?? 4_096,
    draining: draining.signal,
    shutdown: shutdown.signal,
    newLink: linkFor,
  };
  const app = createApp(parts);
  let door = CLOSED_DOOR; // until the port is known
  let url = '';
  const tcp = serverFor(app, () => door);
  const servers: Server[] = [];
  try {
    const port = await listenOnPort(tcp, host, options.port);
    servers.push(tcp);
    if (options.socket !== null) {
      const local = serverFor(app, socketDoor);
      await listenOnSocket(local, options.socket);
      servers.push(local);
    }
    door = publicUrl === null ? loopbackDoor(port) : publicDoor(publicUrl);
    url = publicUrl?.origin ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
    let closing: Promise<void> | null = null;
    return {
      url,
      port,
      newLink: () => linkFor(engine.owner).link,
      close({ graceMs = 10_000 } = {}) {
        closing ??= end(graceMs);
        return closing;
      },
    };
  } catch (error) {
    for (const server of servers) server.close();
    throw error;
  }

  function linkFor(owner: string): Link {
    if (owner === engine.owner) return signIn.newLink(url);
    throw new Refusal('forbidden', `Links of this server sign in as "${engine.owner}", not as "${owner}".`, {
      hint: `Use --as "${engine.owner}", or create a key for "${owner}".`,
    });
  }

  async function end(graceMs: number): Promise<void> {
    draining.abort();
    try {
      await options.tasks?.close();
      await engine.close({ graceMs });
    } finally {
      shutdown.abort();
      await Promise.all(servers.map(ended));
    }
  }
}

/** Streams have ended. Other connections get half a second to finish. */
function ended(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), 500);
  return closed.finally(() => clearTimeout(timer));
}

/** Beyond this machine the server needs TLS, one name, and keys. Anything else is refused, with what to do. */
export function checkReach(host: string, publicUrl: string | undefined): URL | null {
  if (publicUrl !== undefined) {
    const url = URL.canParse(publicUrl) ? new URL(publicUrl) : null;
    // Without a user name, path, query or fragment.
    if (url?.protocol === 'https:' && url.href === `${url.origin}/`) return url;
    throw new ThroughlineError('invalid', 'The public URL must be https://NAME, without a path or a user name.', {
      hint: 'For example: --public-url https://agents.example.org',
    });
  }
  if (LOOPBACK.includes(host)) return null;
  throw new ThroughlineError('refused', `Listening on ${host} would open this server to the network without TLS.`, {
    hint:
      'Use a reverse proxy with TLS (caddy, nginx) that passes requests on to loopback. Then set --public-url https://NAME, and ' +
      'create a key for everybody with "throughline keys create". --host works only with --public-url.',
  });
}
