import { type LookupAddress, lookup } from 'node:dns';
import {
  createServer,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { BlockList, connect, isIP, type Server as Listener, type LookupFunction, type Socket } from 'node:net';
import { type Duplex, pipeline } from 'node:stream';
import { type Destination, formatDestination, isAllowed, parseAuthority } from '../../core/sandbox/allowlist.ts';

/*
 * The only way out of a sandbox whose network is "model": an HTTP proxy that connects to the destinations of an allowlist and to nothing
 * else. It takes CONNECT and absolute-form requests. A request in origin-form ("GET /v1/messages") is for the model whose key stays with us:
 * it is sent there with the key, by TLS.
 *
 * The client is hostile. So every request is rebuilt from its parsed parts, never copied. A name is resolved once, here, and only checked
 * addresses are connected to. Nothing is logged.
 */

export interface ProxySettings {
  readonly allow: readonly Destination[];
  /** Null: agents have their keys themselves. */
  readonly model: KeptKey | null;
  readonly limits?: Partial<ProxyLimits>;
  /** Finds all addresses of a name. Left out: the system's resolver. */
  readonly resolve?: (name: string, done: (error: Error | null, found: readonly LookupAddress[]) => void) => void;
}

/** The key that is added to requests in origin-form. */
export interface KeptKey {
  /** Where these requests are sent. Its path is put before theirs. */
  readonly url: URL;
  /** `x-api-key`, or `authorization`. */
  readonly header: string;
  readonly value: string;
}

export interface ProxyLimits {
  readonly connections: number;
  readonly headerBytes: number;
  /** How long the header of a request may take. */
  readonly headerMs: number;
  /** How long nothing may be sent in either direction. Models think for minutes without a byte. */
  readonly idleMs: number;
}

const LIMITS: ProxyLimits = { connections: 256, headerBytes: 32_768, headerMs: 30_000, idleMs: 900_000 };

/** Headers of one connection: never forwarded. */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'host', 'expect'],
]);
/** Headers that could name another account. */
const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'];

/** Addresses of this machine and its own networks, and those that lead to them. One list for each family: a BlockList of both would mix them. */
const PRIVATE = {
  4: networks('ipv4', [
    ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
    ...['192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/3'],
  ]),
  6: networks('ipv6', [
    ...['::/96', '::ffff:0:0/96', '64:ff9b::/32', '100::/64', '2001::/32', '2002::/16'],
    ...['fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
  ]),
};
const LOOPBACK = { 4: networks('ipv4', ['127.0.0.0/8']), 6: networks('ipv6', ['::1/128']) };

function networks(family: 'ipv4' | 'ipv6', all: readonly string[]): BlockList {
  const list = new BlockList();
  for (const [address = '', bits] of all.map((one) => one.split('/'))) list.addSubnet(address, Number(bits), family);
  return list;
}

function within(lists: typeof PRIVATE, address: string): boolean {
  return isIP(address) === 6 ? lists[6].check(address, 'ipv6') : lists[4].check(address, 'ipv4');
}

export const isPrivate = (address: string) => within(PRIVATE, address);

/** An error whose message is sent to the client. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class AllowlistProxy {
  readonly #server: Server;
  readonly #allow: readonly Destination[];
  readonly #model: KeptKey | null;
  readonly #limits: ProxyLimits;
  readonly #resolve: NonNullable<ProxySettings['resolve']>;
  readonly #sockets = new Set<Duplex>();
  readonly #agents: { readonly http: HttpAgent; readonly https: HttpsAgent };
  #listener: Listener | null = null;

  constructor({ allow, model, limits, resolve }: ProxySettings) {
    this.#limits = { ...LIMITS, ...limits };
    // Without the model's address: it is reached only with our key, never with one of the agent's own account.
    this.#allow = allow;
    this.#model = model;
    this.#resolve = resolve ?? ((name, done) => lookup(name, { all: true }, done));
    const pool = { keepAlive: true, timeout: this.#limits.idleMs };
    this.#agents = { http: new HttpAgent(pool), https: new HttpsAgent(pool) };
    const { headerBytes, headerMs, connections } = this.#limits;
    this.#server = createServer({
      maxHeaderSize: headerBytes,
      headersTimeout: headerMs,
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(headerMs, 5_000),
    });
    this.#server.maxConnections = connections;
    this.#server.on('connection', (socket: Socket) => this.#accept(socket));
    this.#server.on('request', (request, response) => this.#request(request, response));
    this.#server.on('connect', (request, socket: Socket, head) => this.#connect(request, socket, head));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
      if (socket.writable) socket.end(answer(new Refusal(status, 'The request is malformed.')));
      else socket.destroy();
    });
  }

  /** Serves on a socket that another process has opened in the network of a sandbox. */
  adopt(listener: Listener & { allowHalfOpen?: boolean }): void {
    this.#listener = listener;
    listener.maxConnections = this.#limits.connections;
    // As in servers of HTTP: a client that closes its side after the request still gets the answer.
    listener.allowHalfOpen = true;
    listener.on('connection', (socket) => this.#server.emit('connection', socket));
    listener.on('error', () => {}); // a connection could not be accepted; the next one may
    // Node checks `headersTimeout` only on a server that listens.
    this.#server.emit('listening');
  }

  /** Cuts all connections. May be repeated. */
  close(): void {
    this.#listener?.close();
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  #accept(socket: Socket): void {
    this.#keep(socket);
    socket.setTimeout(this.#limits.idleMs, () => socket.destroy());
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on('error', () => {}); // both ends notice a cut connection themselves
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #request(request: IncomingMessage, response: ServerResponse): void {
    try {
      const { url, key } = this.#target(request.url ?? '');
      // The answer to TRACE repeats the request, with the key in it.
      if (key !== null && request.method === 'TRACE') throw new Refusal(405, 'The method TRACE is not allowed.');
      this.#forward(url, key, request, response);
    } catch (error) {
      refuse(response, error);
    }
  }

  /** Where a request is sent, and with which key. Throws a `Refusal`. */
  #target(asked: string): { readonly url: URL; readonly key: KeptKey | null } {
    if (asked.startsWith('/')) {
      const model = this.#model;
      if (model === null) throw new Refusal(400, 'This is a proxy: name the whole URL.');
      return { url: below(model.url, asked), key: model };
    }
    const url = URL.parse(asked);
    if (url === null || url.protocol !== 'http:' || url.username !== '' || url.password !== '') {
      throw new Refusal(400, 'The proxy takes http:// URLs without a password, and CONNECT for everything else.');
    }
    this.#check(destinationOf(url));
    return { url, key: null };
  }

  #check(destination: Destination): void {
    if (!isAllowed(this.#allow, destination)) throw notAllowed(destination);
    if (isIP(destination.host) !== 0) this.#checkAddress(destination, destination.host);
  }

  /** Private addresses can be reached only if the allowlist names them, by address or as "localhost". */
  #checkAddress({ host, port }: Destination, address: string): void {
    if (!isPrivate(address)) return;
    if (this.#allow.some((entry) => entry.host === address && entry.port === port)) return;
    if (host === 'localhost' && within(LOOPBACK, address)) return;
    throw new Refusal(
      403,
      `${formatDestination({ host, port })} is the private address ${address}. To allow that, add ` +
        `"${formatDestination({ host: address, port })}" to "sandbox.allow" of Throughline's settings.`,
    );
  }

  /** The connection uses the addresses that were checked here. */
  #lookup(destination: Destination): LookupFunction {
    return (name, options, done) => {
      this.#resolve(name, (error, found) => {
        try {
          if (error) throw error;
          if (found.length === 0) throw new Error('its name has no address');
          for (const { address } of found) this.#checkAddress(destination, address);
        } catch (refusal) {
          done(refusal as Error, []);
          return;
        }
        if (options.all) done(null, [...found]);
        else done(null, found[0]?.address ?? '', found[0]?.family);
      });
    };
  }

  #forward(url: URL, key: KeptKey | null, request: IncomingMessage, response: ServerResponse): void {
    const isTls = url.protocol === 'https:';
    const destination = destinationOf(url);
    const { host } = destination;
    const options: RequestOptions = {
      ...destination,
      method: request.method,
      path: url.pathname + url.search,
      headers: ['host', url.host, ...forwardedHeaders(request, key)],
      lookup: this.#lookup(destination),
      ...(isTls
        ? { agent: this.#agents.https, ...(isIP(host) === 0 && { servername: host }) }
        : { agent: this.#agents.http }),
    };
    const upstream = (isTls ? httpsRequest : httpRequest)(options);
    upstream.on('error', (error) => refuse(response, unreachable(destination, error)));
    upstream.on('timeout', () => upstream.destroy(new Error('no data for too long')));
    upstream.on('response', (answered) => {
      try {
        const { statusCode = 0 } = answered;
        if (statusCode < 200) throw new Error(`status ${statusCode}`); // Node's parser takes any number
        response.writeHead(statusCode, endToEndHeaders(answered)); // throws for what must not be sent on
      } catch (error) {
        upstream.destroy();
        refuse(response, unusable(destination, error));
        return;
      }
      pipeline(answered, response, () => {});
    });
    // Nobody asked for it: the header that would is never forwarded.
    upstream.on('upgrade', (_, socket) => {
      socket.destroy();
      refuse(response, unusable(destination, new Error('status 101')));
    });
    response.on('close', () => upstream.destroy());
    pipeline(request, upstream, () => {});
  }

  #connect(request: IncomingMessage, client: Socket, head: Buffer): void {
    const refuseClient = (error: unknown) => client.end(answer(asRefusal(error)));
    try {
      const destination = parseAuthority(request.url ?? '');
      if (destination === null) throw new Refusal(400, 'CONNECT takes HOST:PORT.');
      this.#check(destination);
      this.#tunnel(destination, client, head, refuseClient);
    } catch (error) {
      refuseClient(error);
    }
  }

  #tunnel(destination: Destination, client: Socket, head: Buffer, refuseClient: (error: unknown) => void): void {
    const upstream = connect({ ...destination, lookup: this.#lookup(destination), allowHalfOpen: true });
    this.#keep(upstream);
    const failed = (error: Error) => refuseClient(unreachable(destination, error));
    upstream.once('error', failed);
    upstream.setTimeout(this.#limits.idleMs, () => upstream.destroy(new Error('no data for too long')));
    client.once('close', () => upstream.destroy());
    upstream.once('connect', () => {
      upstream.off('error', failed);
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      client.pipe(upstream);
      upstream.pipe(client);
      // If one side is cut, the other is cut as well. If one direction only ends, the other continues.
      upstream.once('close', () => client.destroySoon());
    });
  }
}

function destinationOf(url: URL): Destination {
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return { host, port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80) };
}

/** The path of a request, below that of the model. */
function below({ origin, pathname }: URL, path: string): URL {
  const root = pathname.replace(/\/$/, '');
  const url = URL.parse(origin + root + path);
  if (url === null || url.origin !== origin || !url.pathname.startsWith(`${root}/`)) {
    throw new Refusal(403, `The path must lie below ${root}/.`);
  }
  return url;
}

function notAllowed(destination: Destination): Refusal {
  const name = formatDestination(destination);
  return new Refusal(
    403,
    `The network of this sandbox does not reach ${name}. To allow it, add "${name}" to "sandbox.allow" of Throughline's settings.`,
  );
}

function unreachable(destination: Destination, error: Error): Refusal {
  if (error instanceof Refusal) return error;
  const why = (error as NodeJS.ErrnoException).code ?? error.message;
  return new Refusal(502, `${formatDestination(destination)} cannot be reached (${why}).`);
}

function unusable(destination: Destination, error: unknown): Refusal {
  return new Refusal(
    502,
    `${formatDestination(destination)} answered with what is no HTTP (${(error as Error).message}).`,
  );
}

const asRefusal = (error: unknown) => (error instanceof Refusal ? error : new Refusal(500, 'The proxy failed.'));

function refuse(response: ServerResponse, error: unknown): void {
  const { status, message } = asRefusal(error);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // The rest of the body is not read, so the connection cannot be used again.
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' }).end(`${message}\n`);
}

function answer({ status, message }: Refusal): string {
  const body = `${message}\n`;
  const head = [
    'content-type: text/plain; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  return `HTTP/1.1 ${status} Refused\r\n${head.join('\r\n')}\r\n\r\n${body}`;
}

/** The headers of a message as it came, without those of the connection. */
function endToEndHeaders({ rawHeaders, headers }: IncomingMessage): string[] {
  const named = (headers.connection ?? '').toLowerCase().split(/\s*,\s*/);
  return pairs(rawHeaders)
    .filter(([name]) => !HOP_BY_HOP.has(name.toLowerCase()) && !named.includes(name.toLowerCase()))
    .flat();
}

function forwardedHeaders(request: IncomingMessage, key: KeptKey | null): string[] {
  // Without this header Node does not chunk the body, and the body of a GET would be read as a second request.
  const framing = request.headers['transfer-encoding'] === undefined ? [] : ['transfer-encoding', 'chunked'];
  const kept = pairs(endToEndHeaders(request));
  if (key === null) return [...kept.flat(), ...framing];
  const others = kept.filter(([name]) => ![...KEY_HEADERS, key.header].includes(name.toLowerCase()));
  return [...others.flat(), key.header, key.value, ...framing];
}

const pairs = (flat: readonly string[]): [string, string][] =>
  Array.from({ length: flat.length / 2 }, (_, at) => [flat[2 * at] ?? '', flat[2 * at + 1] ?? '']);
