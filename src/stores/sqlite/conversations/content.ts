import { hash } from 'node:crypto';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
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

interface Packed extends Omit<Stored, 'json'> {
  readonly bytes: Uint8Array;
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

/**
 * The same for what is long and seldom read: as compressed JSON, with only the bytes of images and files stored separately. They are
 * those of earlier prompts, so mostly stored already.
 */
export function packValue(db: Database, owner: string, value: unknown): Packed {
  const bodies = new Map<string, string>();
  const json = JSON.stringify(value, (key, inner: unknown) => {
    if (typeof inner !== 'string') return inner;
    return key === 'data' || key === 'blob' ? apart(inner, bodies) : escaped(inner);
  });
  for (const [name, body] of bodies) db.run(KEEP, owner, name, body);
  return { bytes: zstdCompressSync(json), refs: bodies.size === 0 ? 0 : 1, hashes: [...bodies.keys()] };
}

/** Throws a SyntaxError when the bytes are damaged. */
export function unpackValue<T>(db: Database, owner: string, bytes: Uint8Array): T {
  return readValue(db, owner, unzipped(bytes), 1);
}

function unzipped(bytes: Uint8Array): string {
  try {
    return zstdDecompressSync(bytes).toString();
  } catch (cause) {
    throw new SyntaxError('Compressed JSON cannot be read.', { cause });
  }
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
  if (text.length <= LONG) return escaped(text);
  const body = JSON.stringify(text);
  const name = hash('sha256', body, 'hex');
  bodies.set(name, body);
  return MARK + name;
}

function escaped(text: string): string {
  return text.startsWith(MARK) ? MARK + text : text;
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
