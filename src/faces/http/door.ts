const COOKIE = 'throughline';

/**
 * A way into the server, and what is believed of those who come through it. Any user of this machine reaches loopback and any
 * page can be made to send requests there: so both are asked who they are, and by which name they came.
 */
export interface Door {
  /** The only values of the header Host; any other is a name that somebody has pointed at this machine. */
  readonly hosts: ReadonlySet<string>;
  /** The only values of the header Origin: the pages that this server itself hands out. */
  readonly origins: ReadonlySet<string>;
  /** Whether the token of the data home opens it. Beyond this machine only keys do. */
  readonly token: boolean;
  /** Whether browsers reach it by https, so that cookies are for https only. */
  readonly secure: boolean;
  /** What the cookie is called: browsers keep one of a name for all ports of a host. */
  readonly cookie: string;
}

/** On this machine, by TCP: under every name that loopback has. */
export function loopbackDoor(port: number): Door {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  const origins = new Set(hosts.map((host) => `http://${host}`));
  return { hosts: new Set(hosts), origins, token: true, secure: false, cookie: cookieFor(port) };
}

/** The unix socket: no browser comes this way, so no page is believed. */
export function socketDoor(): Door {
  return { hosts: new Set(['localhost']), origins: new Set(), token: true, secure: false, cookie: COOKIE };
}

/** Behind something that ends TLS and passes the name on; `url` is how the world calls this server. */
export function publicDoor(url: URL): Door {
  const cookie = cookieFor(url.port || 443);
  return { hosts: new Set([url.host]), origins: new Set([url.origin]), token: false, secure: true, cookie };
}

function cookieFor(port: number | string): string {
  return `${COOKIE}-${port}`;
}
