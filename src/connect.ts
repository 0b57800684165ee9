import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { HttpEngine } from './clients/http/engine.ts';
import { ThroughlineError } from './core/errors.ts';
import type { HealthReport } from './core/health.ts';
import { checkNoPassword, checkTokenAddress, given } from './core/input/arguments.ts';
import { dataHome } from './host/data-home.ts';
import { systemProcesses } from './host/processes.ts';
import { readAddress, readToken, type ServerFiles, serverFiles } from './host/server-files.ts';
import type { Tasks } from './ports/tasks.ts';

/* Engines and tasks over HTTP: of a named server, or of the server of a data home on this machine. */

export interface ServerOptions {
  /** `http://…`, `https://…`, or `unix:PATH`. */
  readonly server: string;
  /** The token of its data home, or a key; left out: $THROUGHLINE_TOKEN, or for the home's own server its token file. */
  readonly token?: string | undefined;
  /** Send the token by plain http to another machine, where everybody on the way can read it. Left out: $THROUGHLINE_PLAIN_HTTP=1, else no. */
  readonly plainHttp?: boolean | undefined;
  /** The data home with the token file; left out: $THROUGHLINE_HOME, else the XDG data directory. */
  readonly home?: string | undefined;
  /** Needs a key with `act-as`, or the token of the data home; left out: the owner of the key or token. */
  readonly owner?: string | undefined;
  /** Called once whenever the server has not answered for a second and is still waited for. */
  readonly onAway?: ((trouble: ThroughlineError) => void) | undefined;
}

/** Throws `unreachable` when there is no such server or it has another version, and `refused` when it rejects the token. */
export async function connectTo(options: ServerOptions): Promise<HttpEngine> {
  const { server, token, plainHttp = process.env.THROUGHLINE_PLAIN_HTTP === '1', home, owner, onAway } = options;
  const address = parseAddress(server, plainHttp);
  const files = serverFiles(dataHome(home));
  const given = token ?? (process.env.THROUGHLINE_TOKEN || tokenFor(address, files));
  const { connect, socketTransport, tcpTransport } = await client();
  const transport = address.socket === undefined ? tcpTransport(address.url) : socketTransport(address.socket);
  return connect({ transport, token: given, owner, onAway });
}

/**
 * The engine of the data home's server; null: none runs. The cheap checks come first, because mostly none runs. A server that runs but
 * cannot be used is an error: no other process should run turns beside it.
 */
export async function connectHome(options: Pick<ServerOptions, 'home' | 'owner' | 'onAway'>) {
  const files = serverFiles(dataHome(options.home));
  if (!existsSync(files.socket ?? files.address)) return null;
  const token = readToken(files);
  const url = files.socket === null ? liveUrl(files) : null;
  if (token === null || (files.socket === null && url === null)) return null;
  const { connect, socketTransport, tcpTransport, nothingListens } = await client();
  const transport = url === null ? socketTransport(files.socket as string) : tcpTransport(url);
  try {
    // Without a server the owner is `local` by default. The server may have been started for another owner, so we name ours.
    return await connect({ transport, token, owner: options.owner ?? 'local', onAway: options.onAway });
  } catch (error) {
    if (nothingListens(error)) return null; // a killed server left its socket behind
    throw error;
  }
}

/** The health report of the server of a data home; null: none runs, or it is too old to have one. */
export async function healthOfServer(home: string | undefined): Promise<HealthReport | null> {
  const served = await connectHome(given({ home }));
  try {
    return (await served?.caller.ask('getHealth', {})) ?? null;
  } catch (error) {
    if (error instanceof ThroughlineError && error.code === 'not_found') return null;
    throw error;
  } finally {
    await served?.close();
  }
}

/** The tasks of the same server. Directories in plans are relative to the working directory of this process, as without a server. */
export async function tasksOf({ caller }: HttpEngine): Promise<Tasks> {
  const { HttpTasks } = await import('./clients/http/tasks.ts');
  return new HttpTasks(caller, () => process.cwd());
}

/** The other interfaces of the same server: trackers, live streams, and the server itself. */
export async function restOf({ caller }: HttpEngine) {
  const [{ httpTrackers }, { httpLiveStreams }, { HttpServer }] = await Promise.all([
    import('./clients/http/tracker.ts'),
    import('./clients/http/live.ts'),
    import('./clients/http/server.ts'),
  ]);
  return { trackers: httpTrackers(caller), lives: httpLiveStreams(caller), server: new HttpServer(caller) };
}

interface ChoiceOptions extends Pick<ServerOptions, 'home' | 'owner' | 'onAway'> {
  /** Left out: $THROUGHLINE_SERVER, else the running server of the data home. */
  readonly server?: string | undefined;
  /** Use no server. */
  readonly embedded?: boolean | undefined;
  readonly config?: string | undefined;
  readonly store?: string | undefined;
}

/** The server that does the work of a command; null: this process does the work. */
export async function connectIfServed(options: ChoiceOptions): Promise<HttpEngine | null> {
  const { server, embedded, home, config, store, owner, onAway } = options;
  if (embedded) {
    if (server === undefined) return null;
    throw new ThroughlineError('invalid', '--server and --embedded cannot be used together.');
  }
  const named = server ?? (process.env.THROUGHLINE_SERVER || undefined);
  const engine = await (named === undefined
    ? connectHome({ home, owner, onAway })
    : connectTo({ server: named, home, owner, onAway }));
  const unused = config !== undefined ? '--config' : store !== undefined ? '--store' : null;
  if (engine === null || unused === null) return engine;
  await engine.close();
  throw new ThroughlineError('refused', `A server does the work, with its own settings, so ${unused} cannot be used.`, {
    hint: `Leave out ${unused}, give it to "throughline serve", or use --embedded.`,
  });
}

type Address = { readonly url: URL; readonly socket?: undefined } | { readonly socket: string };

function parseAddress(server: string, plainHttp: boolean): Address {
  const [, socket] = /^unix:(.+)$/.exec(server) ?? [];
  if (socket !== undefined) return { socket: resolve(socket) };
  const url = URL.canParse(server) ? new URL(server) : null;
  if (url !== null) checkNoPassword(url);
  if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.search !== '') {
    throw new ThroughlineError('invalid', `"${server}" is not a valid server address.`, {
      hint: 'Write http://127.0.0.1:PORT, https://NAME, or unix:PATH.',
    });
  }
  checkTokenAddress(url, plainHttp, 'THROUGHLINE_PLAIN_HTTP=1 (in a program: "plainHttp")');
  return { url };
}

/** The token of a data home is sent only to the server of that data home. */
function tokenFor(address: Address, files: ServerFiles): string {
  const isOwn =
    address.socket === undefined ? address.url.origin === liveUrl(files)?.origin : address.socket === files.socket;
  const token = isOwn ? readToken(files) : null;
  if (token !== null) return token;
  throw new ThroughlineError('refused', 'There is no token for this server.', {
    hint:
      'Set THROUGHLINE_TOKEN to a key that you create there with "throughline keys create", or to the content of the file ' +
      'server/token in its data home.',
  });
}

/** The address of the server of this home; null: its process has ended, and its port may belong to another program. */
function liveUrl(files: ServerFiles): URL | null {
  const address = readAddress(files);
  return address !== null && systemProcesses.status(address.process) === 'alive' ? new URL(address.url) : null;
}

async function client() {
  const [{ connect }, transports, { nothingListens }] = await Promise.all([
    import('./clients/http/connect.ts'),
    import('./clients/http/connection/node-transport.ts'),
    import('./clients/http/connection/faults.ts'),
  ]);
  return { connect, ...transports, nothingListens };
}
