import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { HttpEngine } from './clients/http/engine.ts';
import { ThroughlineError } from './core/errors.ts';
import { dataHome } from './host/data-home.ts';
import { systemProcesses } from './host/processes.ts';
import { readAddress, readToken, type ServerFiles, serverFiles } from './host/server-files.ts';
import type { Tasks } from './ports/tasks.ts';

/** Engines and tasks over HTTP, for programs of this machine: of a server that is named, or of the one that a data home has. */

export interface ServerOptions {
  /** `http://…`, `https://…`, or `unix:PATH`. */
  readonly server: string;
  /** The token of its data home, or a key; left out: $THROUGHLINE_TOKEN, or of the home's own server its token file. */
  readonly token?: string | undefined;
  /** Whose token file; left out: $THROUGHLINE_HOME, else the XDG data directory. */
  readonly home?: string | undefined;
  /** With the token of the data home; left out: whoever the token stands for. */
  readonly owner?: string | undefined;
}

/** Throws `unreachable` when there is no such server, or one of another version, and `refused` when it does not know us. */
export async function connectTo({ server, token, home, owner }: ServerOptions): Promise<HttpEngine> {
  const address = parseAddress(server);
  const files = serverFiles(resolve(home ?? dataHome()));
  const given = token ?? (process.env.THROUGHLINE_TOKEN || tokenFor(address, files));
  const { connect, socketTransport, tcpTransport } = await client();
  const transport = address.socket === undefined ? tcpTransport(address.url) : socketTransport(address.socket);
  return connect({ transport, token: given, owner });
}

/**
 * The engine of the data home's server; null: none runs. What costs nothing comes first: mostly there is none. One that
 * runs and cannot be used is an error: beside it, nobody else should run turns.
 */
export async function connectHome(options: { home?: string | undefined; owner?: string | undefined }) {
  const files = serverFiles(resolve(options.home ?? dataHome()));
  if (!existsSync(files.socket ?? files.address)) return null;
  const token = readToken(files);
  const url = files.socket === null ? liveUrl(files) : null;
  if (token === null || (files.socket === null && url === null)) return null;
  const { connect, socketTransport, tcpTransport, nothingListens } = await client();
  const transport = url === null ? socketTransport(files.socket as string) : tcpTransport(url);
  try {
    // Named, as it is without a server: whoever has started the server may have done so for another.
    return await connect({ transport, token, owner: options.owner ?? 'local' });
  } catch (error) {
    if (nothingListens(error)) return null; // the socket of a server that was killed
    throw error;
  }
}

/** The tasks of the same server. Directories in plans are relative to that of this process, as they are embedded. */
export async function tasksOf({ caller }: HttpEngine): Promise<Tasks> {
  const { HttpTasks } = await import('./clients/http/tasks.ts');
  return new HttpTasks(caller, () => process.cwd());
}

export interface ChoiceOptions {
  /** Left out: $THROUGHLINE_SERVER, else the one that runs for the data home. */
  readonly server?: string | undefined;
  /** None, whatever runs. */
  readonly embedded?: boolean | undefined;
  readonly home?: string | undefined;
  readonly config?: string | undefined;
  readonly owner?: string | undefined;
}

/** The server that a command works through; null: it works embedded. */
export async function connectIfServed({
  server,
  embedded,
  home,
  config,
  owner,
}: ChoiceOptions): Promise<HttpEngine | null> {
  if (embedded) {
    if (server === undefined) return null;
    throw new ThroughlineError(
      'invalid',
      'Either through a server or embedded: --server and --embedded exclude each other.',
    );
  }
  const named = server ?? (process.env.THROUGHLINE_SERVER || undefined);
  const engine = await (named === undefined ? connectHome({ home, owner }) : connectTo({ server: named, home, owner }));
  if (engine === null || config === undefined) return engine;
  await engine.close();
  throw new ThroughlineError('refused', 'A server does the work here, and it has settings of its own.', {
    hint: 'Leave --config out, give it to "throughline serve", or say --embedded.',
  });
}

type Address = { readonly url: URL; readonly socket?: undefined } | { readonly socket: string };

const LOOPBACK = ['127.0.0.1', '[::1]', 'localhost'];

function parseAddress(server: string): Address {
  const [, socket] = /^unix:(.+)$/.exec(server) ?? [];
  if (socket !== undefined) return { socket: resolve(socket) };
  const url = URL.canParse(server) ? new URL(server) : null;
  const isPlain = url?.protocol === 'http:';
  if (url === null || !(isPlain || url.protocol === 'https:') || url.pathname !== '/' || url.search !== '') {
    throw new ThroughlineError('invalid', `"${server}" is no address of a server.`, {
      hint: 'Write http://127.0.0.1:PORT, https://NAME, or unix:PATH.',
    });
  }
  if (isPlain && !LOOPBACK.includes(url.hostname)) {
    throw new ThroughlineError('refused', `By ${server}, the token would be readable for everybody on the way.`, {
      hint: 'Beyond this machine, a server is reached by https.',
    });
  }
  return { url };
}

/** The token of a data home is for the server of that home, and is shown to no other. */
function tokenFor(address: Address, files: ServerFiles): string {
  const isOwn =
    address.socket === undefined ? address.url.origin === liveUrl(files)?.origin : address.socket === files.socket;
  const token = isOwn ? readToken(files) : null;
  if (token !== null) return token;
  throw new ThroughlineError('refused', 'There is no token for this server.', {
    hint:
      'Set THROUGHLINE_TOKEN to a key that "throughline keys create" has made there, or to what the file server/token of ' +
      'its data home holds.',
  });
}

/** Where the server of this home listens; null: the process that has said so is gone, and its port may be another's. */
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
