import type { Server } from 'node:http';
import { ThroughlineError } from '../../core/errors.ts';
import { PAGE_SCOPES } from '../../core/key.ts';
import type { LinkStore, Store } from '../../ports/store.ts';
import { CLOSED_DOOR, loopbackDoor, publicDoor, socketDoor } from './access/door.ts';
import { Failures } from './access/failures.ts';
import { parseOrigins } from './access/origins.ts';
import { SignIn } from './access/sign-in.ts';
import { type AppParts, createApp } from './app.ts';
import { listenOnPort, listenOnSocket, type Sharing, serverFor, shareListening } from './listen.ts';
import { STREAM, type StreamSettings } from './streams/event-stream.ts';

/** `tasks` are closed before the engine. */
export interface ServerOptions
  extends Pick<
    AppParts,
    | 'engine'
    | 'tasks'
    | 'trackers'
    | 'log'
    | 'metrics'
    | 'health'
    | 'version'
    | 'command'
    | 'backup'
    | 'insight'
    | 'page'
  > {
  readonly keys: Pick<Store, 'findKey'> & LinkStore;
  readonly token: string;
  /** The path of the unix socket; null: none. */
  readonly socket: string | null;
  readonly host: string;
  readonly port: number;
  /** The public address, through a reverse proxy that handles TLS; left out: for this machine only. */
  readonly publicUrl?: string;
  /** Whether the `X-Forwarded-For` of that proxy is trusted; left out: no. */
  readonly trustProxy?: boolean;
  /** Other origins whose pages may call, with a key; left out: none. */
  readonly allowOrigins?: readonly string[];
  readonly stream?: Partial<StreamSettings>;
  /** How many connections each listener accepts at a time; left out: one. */
  readonly accepts?: number;
  readonly mostReaders?: number;
  readonly now?: () => number;
}

const LOOPBACK = ['127.0.0.1', '::1', 'localhost'];

/** Starts the server: one app, on TCP and on a unix socket. */
export async function startServer(options: ServerOptions): Promise<HttpServer> {
  const publicUrl = checkReach(options.host, options.publicUrl, options.trustProxy);
  const server = new HttpServer(options);
  await server.listen(publicUrl);
  return server;
}

export class HttpServer {
  /** Without a slash at the end. */
  url = '';
  port = 0;
  /** Resolves when the server accepts bursts of connections. Until then, and if that fails, it accepts one at a time. */
  shared: Promise<void> = Promise.resolve();
  readonly #options: ServerOptions;
  readonly #signIn: SignIn;
  readonly #draining = new AbortController();
  readonly #shutdown = new AbortController();
  readonly #listeners: Server[] = [];
  #door = CLOSED_DOOR; // until the port is known
  #closing: Promise<void> | null = null;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#signIn = new SignIn(options.token, options.keys, options.now ?? Date.now);
  }

  async listen(publicUrl: URL | null): Promise<void> {
    const { host, port, socket, trustProxy: trustsProxy = false, accepts = 1 } = this.#options;
    const allowed = parseOrigins(this.#options.allowOrigins ?? []);
    const app = createApp(this.#appParts());
    const byPort = () => this.#listener(app, () => this.#door);
    const bySocket = () => this.#listener(app, socketDoor);
    const shared: Sharing[] = [];
    const share = (listener: Server, make: () => Server) =>
      shared.push({ listener, others: Array.from({ length: accepts - 1 }, make) });
    try {
      const tcp = byPort();
      this.port = await listenOnPort(tcp, host, port);
      share(tcp, byPort);
      if (socket !== null) {
        const unix = bySocket();
        await listenOnSocket(unix, socket);
        share(unix, bySocket);
      }
    } catch (error) {
      for (const listener of this.#listeners) listener.close();
      throw error;
    }
    for (const listener of this.#listeners) listener.on('error', this.#onError);
    if (accepts > 1) this.shared = shareListening(shared, this.#draining.signal);
    this.#door =
      publicUrl === null ? loopbackDoor(this.port, allowed) : publicDoor(publicUrl, { trustsProxy }, allowed);
    this.url = publicUrl?.origin ?? `http://${host.includes(':') ? `[${host}]` : host}:${this.port}`;
  }

  /** A link that signs a browser in, once, for the owner of this server and with every scope. */
  async newLink(): Promise<string> {
    const { owner } = this.#options.engine;
    return (await this.#signIn.newLink(this.url, { owner, scopes: PAGE_SCOPES, expiresAt: null })).link;
  }

  /**
   * Accepts no new work, lets running turns end within `graceMs` and interrupts the rest. Queued turns wait for the next
   * server. Readers get the events of all this. Idempotent.
   */
  close({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#end(graceMs);
    return this.#closing;
  }

  /** Registers the listener, so that it is closed with the others, also when the start fails. */
  #listener(...how: Parameters<typeof serverFor>): Server {
    const server = serverFor(...how);
    this.#listeners.push(server);
    return server;
  }

  /** A connection could not be accepted, for example because no file descriptor is free. The others continue. */
  readonly #onError = (err: unknown): void => {
    this.#options.log.error({ err }, 'a listener failed');
  };

  #appParts(): AppParts {
    const { engine, keys, token, stream, log, mostReaders = 4_096, now = Date.now } = this.#options;
    const failures = new Failures(log, now);
    return {
      ...this.#options,
      keeper: { token, signIn: this.#signIn, keys, owner: engine.owner, now, failures },
      stream: { ...STREAM, ...stream },
      mostReaders,
      draining: this.#draining.signal,
      shutdown: this.#shutdown.signal,
      newLink: (grant) => this.#signIn.newLink(this.url, grant),
    };
  }

  async #end(graceMs: number): Promise<void> {
    this.#draining.abort(new ThroughlineError('closed', 'The server is stopping.'));
    try {
      await this.#options.tasks?.close();
      await this.#options.engine.close({ graceMs });
    } finally {
      this.#shutdown.abort();
      await this.shared;
      await Promise.all(this.#listeners.map(ended));
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
export function checkReach(host: string, publicUrl: string | undefined, trustProxy = false): URL | null {
  if (trustProxy && publicUrl === undefined) {
    throw new ThroughlineError('invalid', '"--trust-proxy" needs the public address of the proxy.', {
      hint: 'Use --trust-proxy together with --public-url.',
    });
  }
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
