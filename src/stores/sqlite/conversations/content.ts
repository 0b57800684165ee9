import { hash } from 'node:crypto';
import type { Database } from '../file/database.ts';

/*
 * Values are stored as JSON. Strings longer than LONG are stored separately, by their hash and once per owner, so that a fork
 * copies references only. In the JSON such a string is NUL + hash; a string that begins with NUL gets another NUL in front. The
 * separate string is JSON too, so that unpaired surrogates, which the database does not keep, come back unchanged.
 */
const LONG = 8192;
const MARK = '\u0000';

export interface Json {
  readonly json: string;
  /** 1: strings of it are stored separately. 0: none is. */
  readonly refs: number;
}

interface Stored extends Json {
  /** Hashes of the separate strings, which are in `contents` already. */
  readonly hashes: readonly string[];
}

const KEEP = 'INSERT INTO contents (owner, hash, body) VALUES (?, ?, ?) ON CONFLICT (owner, hash) DO NOTHING';
const FETCH = 'SELECT body FROM contents WHERE owner = ? AND hash = ?';
const LINK =
  'INSERT INTO content_links (turn, content, owner) SELECT ?, no, owner FROM contents WHERE owner = ? AND hash = ? ON CONFLICT DO NOTHING';

export function storeValue(db: Database, owner: string, value: unknown): Stored {
  const plain = JSON.stringify(value);
  if (plain.length <= LONG) return { json: plain, refs: 0, hashes: [] };
  const bodies = new Map<string, string>();
  const json = JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'string' ? apart(inner, bodies) : inner,
  );
  if (bodies.size === 0) return { json: plain, refs: 0, hashes: [] };
  for (const [name, body] of bodies) db.run(KEEP, owner, name, body);
  return { json, refs: 1, hashes: [...bodies.keys()] };
}

/** Records which contents a turn uses, so that unused ones can be found. */
export function linkContents(db: Database, owner: string, turn: number, hashes: readonly string[]): void {
  for (const name of hashes) db.run(LINK, turn, owner, name);
}

export function readValue<T>(db: Database, owner: string, json: string, hasReferences: number): T {
  if (hasReferences === 0) return JSON.parse(json) as T;
  return JSON.parse(json, (_key, inner: unknown) =>
    typeof inner === 'string' ? together(db, owner, inner) : inner,
  ) as T;
}

function apart(text: string, bodies: Map<string, string>): string {
  if (text.length <= LONG) return text.startsWith(MARK) ? MARK + text : text;
  const body = JSON.stringify(text);
  const name = hash('sha256', body, 'hex');
  bodies.set(name, body);
  return MARK + name;
}

function together(db: Database, owner: string, text: string): string {
  if (!text.startsWith(MARK)) return text;
  if (text.startsWith(MARK + MARK)) return text.slice(1);
  const row = db.one<{ body: string }>(FETCH, owner, text.slice(1));
  if (row === undefined) throw new Error(`The content ${text.slice(1)} is missing.`);
  return JSON.parse(row.body) as string;
}

/** The same hash for the same value, whatever the order of its fields. An undefined field counts as missing. */
export function canonicalHash(value: unknown): Uint8Array {
  return Buffer.from(hash('sha256', JSON.stringify(value, sorted), 'hex'), 'hex');
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
