import { hash } from 'node:crypto';

/** The same bytes for the same value, whatever the order of its fields. What is undefined counts as left out. */
export function canonicalHash(value: unknown): Uint8Array {
  return Buffer.from(hash('sha256', JSON.stringify(value, sorted), 'hex'), 'hex');
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
