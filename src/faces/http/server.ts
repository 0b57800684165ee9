import type { Server } from 'node:http';
import { ThroughlineError } from '../../core/errors.ts';
import type { Engine } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { Tasks } from '../../ports/tasks.ts';
import { type AppParts, createApp } from './app.ts';
import { type Door, loopbackDoor, publicDoor, socketDoor } from './door.ts';
import { STREAM, type StreamSettings } from './event-stream.ts';
import { listenOnPort, listenOnSocket, serverFor } from './listen.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import { Refusal } from './refusal.ts';
import { type Link, SignIn } from './sign-in.ts';

export interface ServerOptions {
  readonly engine: Engine;
  /** Closed before the engine; left out: there are none here. */
  readonly tasks?: Tasks;
  readonly keys: Pick<Store, 'findKey'>;
  readonly token: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly version: string;
  /** Where the unix socket is made; null: there is none. */
  readonly socket: string | null;
  readonly host: string;
  readonly port: number;
  /** How the world calls this server, through something that ends TLS; left out: it is for this machine alone. */
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
   * Begins no work any more, lets running turns end within `graceMs` and interrupts the rest; what is queued waits for the next
   * server. Readers see all of it. Idempotent.
   */
  close(options?: { graceMs?: number }): Promise<void>;
}

const NOBODY: Door = { hosts: new Set(), origins: new Set(), token: false, secure: false, cookie: '' };
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
  let door: Door = NOBODY; // until the port is known
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
    throw new Refusal('forbidden', `A link signs a browser in for "${engine.owner}", and not for "${owner}".`, {
      hint: `This server was started for "${engine.owner}": ask as that one (--as), or make a key.`,
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

/** Streams have ended; a connection that still has something to say gets a moment, and no more. */
function ended(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), 500);
  return closed.finally(() => clearTimeout(timer));
}

/** Beyond this machine only behind TLS, under one name, and with keys. Anything else is refused, with how to do it. */
export function checkReach(host: string, publicUrl: string | undefined): URL | null {
  if (publicUrl !== undefined) {
    const url = URL.canParse(publicUrl) ? new URL(publicUrl) : null;
    // With nobody's name, no path, no query and no fragment: all that it may have is in its origin.
    if (url?.protocol === 'https:' && url.href === `${url.origin}/`) return url;
    throw new ThroughlineError(
      'invalid',
      'The public URL is https://NAME, with nothing before the name or behind it.',
      {
        hint: 'Give it as the world types it: --public-url https://agents.example.org',
      },
    );
  }
  if (LOOPBACK.includes(host)) return null;
  throw new ThroughlineError('refused', `Binding to ${host} would open this server to the network unprotected.`, {
    hint:
      'Let something that ends TLS (caddy, nginx) pass requests on to loopback, say --public-url https://NAME, and give ' +
      'everybody a key: "throughline keys create". Only then is --host taken.',
  });
}
