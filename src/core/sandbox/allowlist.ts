/** Where a program may connect to. `host`: a name in lower case without a final dot, or an address; `*.example.org`: every name below. */
export interface Destination {
  readonly host: string;
  readonly port: number;
}

const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
const WILDCARD = '*.';
const HTTPS = 443;

/**
 * `host:port` as a client sends it with CONNECT. IPv6 addresses are in brackets, and are returned without them. Null: it is not one.
 * Only plain names are accepted, so that a text never means one host to us and another one to the resolver.
 */
export function parseAuthority(text: string): Destination | null {
  const [, address, name, digits = ''] = /^(?:\[([0-9a-f:.]{2,45})\]|([^:[\]]{1,255})):(\d{1,5})$/i.exec(text) ?? [];
  const host = (address ?? name ?? '').toLowerCase().replace(/\.$/, '');
  const port = Number(digits);
  if (port < 1 || port > 65_535) return null;
  if (address === undefined && !NAME.test(host)) return null;
  return { host, port };
}

/** An entry of the allowlist. The default port is that of HTTPS. Null: it is not one. */
export function parseAllowed(entry: string): Destination | null {
  const isWildcard = entry.startsWith(WILDCARD);
  const plain = isWildcard ? entry.slice(WILDCARD.length) : entry;
  const found = parseAuthority(/:\d+$/.test(plain) ? plain : `${plain}:${HTTPS}`);
  // "*.com" and "*.1" would allow far more than anybody means.
  if (found === null || (isWildcard && !/\.[a-z]/.test(found.host))) return null;
  return isWildcard ? { ...found, host: WILDCARD + found.host } : found;
}

export function isAllowed(allow: readonly Destination[], { host, port }: Destination): boolean {
  return allow.some((entry) => {
    if (entry.port !== port) return false;
    return entry.host.startsWith(WILDCARD) ? host.endsWith(entry.host.slice(1)) : entry.host === host;
  });
}

/** As it is written in the settings. */
export function formatDestination({ host, port }: Destination): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
