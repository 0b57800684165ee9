import { isIP } from 'node:net';
import { Refusal } from '../refusal.ts';

const COOKIE = 'throughline';

/**
 * One address of the server, and what is trusted there. Every user of this machine can reach loopback, and any web page can
 * make a browser send requests to it. So both the credentials and the `Host` header are checked.
 */
export interface Door {
  /** The allowed values of the `Host` header. Any other is a name that somebody has pointed at this machine. */
  readonly hosts: ReadonlySet<string>;
  /** The origins of the pages of this server. */
  readonly origins: ReadonlySet<string>;
  /** Other origins whose pages may call, with a key (`origins.ts`). */
  readonly allowed: ReadonlySet<string>;
  /** Whether the token of the data home is accepted. Beyond this machine only keys are. */
  readonly token: boolean;
  /** Whether browsers use https, so that cookies are for https only. */
  readonly secure: boolean;
  /** Whether the `X-Forwarded-For` of a proxy is trusted. */
  readonly trustsProxy: boolean;
  /** The name of the cookie. It differs by port, because browsers share cookies between all ports of a host. */
  readonly cookie: string;
}

const NONE: ReadonlySet<string> = new Set();

/** Allows nothing. */
export const CLOSED_DOOR: Door = {
  hosts: NONE,
  origins: NONE,
  allowed: NONE,
  token: false,
  secure: false,
  trustsProxy: false,
  cookie: COOKIE,
};

/** TCP on this machine, by every name of loopback. */
export function loopbackDoor(port: number, allowed = NONE): Door {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  const origins = new Set(hosts.map((host) => `http://${host}`));
  return { ...CLOSED_DOOR, hosts: new Set(hosts), origins, allowed, token: true, cookie: cookieFor(port) };
}

/** The unix socket. Browsers cannot use it, so no origin is allowed. */
export function socketDoor(): Door {
  return { ...CLOSED_DOOR, hosts: new Set(['localhost']), token: true };
}

/** Behind a reverse proxy that handles TLS and passes the `Host` header on. `url` is the public address. */
export function publicDoor(url: URL, { trustsProxy }: Pick<Door, 'trustsProxy'>, allowed = NONE): Door {
  const [hosts, origins] = [new Set([url.host]), new Set([url.origin])];
  return { ...CLOSED_DOOR, hosts, origins, allowed, secure: true, trustsProxy, cookie: cookieFor(url.port || 443) };
}

function cookieFor(port: number | string): string {
  return `${COOKIE}-${port}`;
}

type Headers = (name: string) => string | undefined;

/** Only exact names. A page that points its own name at this machine (DNS rebinding) still sends that name. */
export function checkHost(header: Headers, { hosts }: Door): void {
  const host = header('host');
  if (host !== undefined && hosts.has(host.toLowerCase())) return;
  throw new Refusal('misdirected', 'Host header not allowed.', { hint: `Use ${[...hosts].join(', ')}.` });
}

/**
 * Whether a cookie counts. Browsers send cookies by themselves, so the browser must also say that a page of ours sent the
 * request. Reading also works from the address bar.
 */
export function cookieCounts(method: string, header: Headers, { origins }: Door): boolean {
  const site = header('sec-fetch-site');
  if (method === 'GET') return site === 'same-origin' || site === 'none';
  return site === 'same-origin' && origins.has(header('origin') ?? '');
}

/**
 * The client's address, as the proxy in front of us has added it to the header; null: no proxy is trusted, or it names none. A client
 * with an IPv6 address usually has a whole /64 network, so the network stands for the address.
 */
export function clientAddress(header: Headers, { trustsProxy }: Door): string | null {
  // Every proxy appends the address that it sees: the client may have forged what comes before the last one.
  const named = trustsProxy ? (header('x-forwarded-for')?.split(',').at(-1)?.trim() ?? '') : '';
  const address = /^::ffff:([\d.]+)$/i.exec(named)?.[1] ?? named;
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : null;
  const [before = '', after] = address.toLowerCase().split('::');
  const groups = before === '' ? [] : before.split(':');
  const rest = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : 8 - groups.length - rest.length;
  return `${[...groups, ...Array<string>(zeros).fill('0'), ...rest].slice(0, 4).join(':')}::/64`;
}
