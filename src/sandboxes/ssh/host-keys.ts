import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/* The known keys of a machine: from a file such as `known_hosts` of OpenSSH, or from the settings. */

export interface HostKey {
  readonly type: string;
  /** As in the file: base64. */
  readonly key: string;
}

export interface KnownKeys {
  readonly known: readonly HostKey[];
  /** Never accepted. */
  readonly revoked: readonly HostKey[];
}

/** The keys of a machine in a file. Certificate authorities are not used. */
export function keysIn(text: string, host: string, port: number): KnownKeys {
  const [known, revoked] = [[] as HostKey[], [] as HostKey[]];
  const name = port === 22 ? host.toLowerCase() : `[${host.toLowerCase()}]:${port}`;
  for (const line of text.split('\n')) {
    const fields = line.trim().split(/\s+/);
    const marker = fields[0]?.startsWith('@') ? fields.shift() : null;
    const [hosts = '', type = '', key = ''] = fields;
    if (hosts.startsWith('#') || key === '' || !isFor(hosts, name)) continue;
    if (marker === '@revoked') revoked.push({ type, key });
    else if (marker === null) known.push({ type, key });
  }
  return { known, revoked };
}

function isFor(hosts: string, name: string): boolean {
  if (hosts.startsWith('|1|')) return isHashOf(hosts, name);
  const patterns = hosts.toLowerCase().split(',');
  const fits = (pattern: string) => {
    const expression = RegExp.escape(pattern).replaceAll('\\*', '.*').replaceAll('\\?', '.');
    return new RegExp(`^${expression}$`).test(name);
  };
  if (patterns.some((pattern) => pattern.startsWith('!') && fits(pattern.slice(1)))) return false;
  return patterns.some(fits);
}

/** As `ssh-keygen -H` writes it: a salt, and the hash of the name with it. */
function isHashOf(hosts: string, name: string): boolean {
  const [, , salt = '', hash = ''] = hosts.split('|');
  const made = createHmac('sha1', Buffer.from(salt, 'base64')).update(name).digest();
  const known = Buffer.from(hash, 'base64');
  return known.length === made.length && timingSafeEqual(known, made);
}

/** "ssh-ed25519 AAAA…", as in a file of public keys; null: it is no such key. */
export function parseHostKey(text: string): HostKey | null {
  const [type = '', key = ''] = text.trim().split(/\s+/);
  const bytes = Buffer.from(key, 'base64');
  return bytes.length > 4 && typeOf(bytes) === type ? { type, key } : null;
}

/** The name that begins every public key. */
export function typeOf(key: Buffer): string {
  return key.length < 4 ? '' : key.toString('latin1', 4, 4 + Math.min(key.readUInt32BE(0), 100));
}

export function fingerprint(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
}

/** The signatures that a key of a type can make. */
export function algorithmsOf(type: string): string[] {
  return type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : [type];
}
