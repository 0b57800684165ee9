import { Refusal } from '../refusal.ts';

const COOKIE = 'throughline';

/**
 * One address of the server, and what is trusted there. Every user of this machine can reach loopback, and any web page can
 * make a browser send requests to it. So both the credentials and the `Host` header are checked.
 */
export interface Door {
  /** The only values of the `Host` header. Any other is a name that somebody has pointed at this machine. */
  readonly hosts: ReadonlySet<string>;
  /** The only values of the `Origin` header: the pages of this server. */
  readonly origins: ReadonlySet<string>;
  /** Whether the token of the data home is accepted. Beyond this machine only keys are. */
  readonly token: boolean;
  /** Whether browsers use https, so that cookies are for https only. */
  readonly secure: boolean;
  /** The name of the cookie. It differs by port, because browsers share cookies between all ports of a host. */
  readonly cookie: string;
}

/** TCP on this machine, by every name of loopback. */
export function loopbackDoor(port: number): Door {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  const origins = new Set(hosts.map((host) => `http://${host}`));
  return { hosts: new Set(hosts), origins, token: true, secure: false, cookie: cookieFor(port) };
}

/** The unix socket. Browsers cannot use it, so no origin is allowed. */
export function socketDoor(): Door {
  return { hosts: new Set(['localhost']), origins: new Set(), token: true, secure: false, cookie: COOKIE };
}

/** Behind a reverse proxy that handles TLS and passes the `Host` header on. `url` is the public address. */
export function publicDoor(url: URL): Door {
  const cookie = cookieFor(url.port || 443);
  return { hosts: new Set([url.host]), origins: new Set([url.origin]), token: false, secure: true, cookie };
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

/** Refuses requests that a browser sends for other sites. Without these headers a request passes here and gains nothing. */
export function checkOrigin(header: Headers, { origins }: Door): void {
  const origin = header('origin');
  const site = header('sec-fetch-site');
  const foreign = origin !== undefined && !origins.has(origin);
  const crossed = site !== undefined && site !== 'same-origin' && site !== 'none';
  if (foreign || crossed) {
    throw new Refusal('forbidden', 'Cross-origin requests are not allowed.', {
      hint: `Allowed origins: ${[...origins].join(', ') || 'none'}. Other sites can call from their own server, with a key.`,
    });
  }
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
