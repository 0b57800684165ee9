import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** A key: its public id, a dot, and its secret. */
const KEY = /^tl_([0-9a-f]{16})\.([A-Za-z0-9_-]{43})$/;

/** `key` is shown once, when it is created; only its hash is stored. */
export function freshKey() {
  const id = randomBytes(8).toString('hex');
  const secret = freshSecret();
  return { id, key: `tl_${id}.${secret}`, hash: sha256(secret).toString('hex') };
}

/** 32 random bytes, as text. */
export function freshSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** The parts of a key; null: it is not a key. */
export function keyParts(text: string): { id: string; secret: string } | null {
  const [, id, secret] = KEY.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

/** Compares in constant time. */
export function sameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(sha256(given), sha256(expected));
}

export function hasHash(secret: string, hash: string): boolean {
  return sameSecret(sha256(secret).toString('hex'), hash);
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

const ANY_KEY = /(tl_[0-9a-f]{16})\.[A-Za-z0-9_-]{43}/g;

/** Replaces every key and the given secrets in a text. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text.replaceAll(ANY_KEY, '$1.[secret]'));
}
