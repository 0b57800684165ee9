import { hash } from 'node:crypto';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';

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

/** A value, and its long strings as JSON, by their hashes. The strings have to be stored first. */
export interface Separated extends Json {
  readonly bodies: ReadonlyMap<string, string>;
}

export interface Packed extends Omit<Separated, 'json'> {
  readonly bytes: Uint8Array;
}

/** Where the separate strings are read from: the JSON of one by its hash; undefined: it is missing. */
export interface ContentSource {
  content(owner: string, hash: string): string | undefined;
}

export function separate(value: unknown): Separated {
  const plain = JSON.stringify(value);
  const bodies = new Map<string, string>();
  if (plain.length <= LONG) return { json: plain, refs: 0, bodies };
  const json = JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'string' ? apart(inner, bodies) : inner,
  );
  return bodies.size === 0 ? { json: plain, refs: 0, bodies } : { json, refs: 1, bodies };
}

/**
 * The same for what is long and seldom read: as compressed JSON, with only the bytes of images and files stored separately. They are
 * those of earlier prompts, so mostly stored already.
 */
export function pack(value: unknown): Packed {
  const bodies = new Map<string, string>();
  const json = JSON.stringify(value, (key, inner: unknown) => {
    if (typeof inner !== 'string') return inner;
    return key === 'data' || key === 'blob' ? apart(inner, bodies) : escaped(inner);
  });
  return { bytes: zstdCompressSync(json), refs: bodies.size === 0 ? 0 : 1, bodies };
}

/** Throws a SyntaxError when the bytes are damaged. */
export function unpackValue<T>(source: ContentSource, owner: string, bytes: Uint8Array): T {
  return readValue(source, owner, unzipped(bytes), 1);
}

export function unzipped(bytes: Uint8Array): string {
  try {
    return zstdDecompressSync(bytes).toString();
  } catch (cause) {
    throw new SyntaxError('Compressed JSON cannot be read.', { cause });
  }
}

export function readValue<T>(source: ContentSource, owner: string, json: string, hasReferences: number): T {
  if (hasReferences === 0) return JSON.parse(json) as T;
  return JSON.parse(json, (_key, inner: unknown) =>
    typeof inner === 'string' ? together(source, owner, inner) : inner,
  ) as T;
}

/** The hashes of the separate strings of a value. */
export function referencesIn(json: string): string[] {
  const found: string[] = [];
  JSON.parse(json, (_key, inner: unknown) => {
    if (typeof inner === 'string' && isReference(inner)) found.push(inner.slice(1));
    return inner;
  });
  return found;
}

function isReference(text: string): boolean {
  return text.startsWith(MARK) && !text.startsWith(MARK + MARK);
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

function together(source: ContentSource, owner: string, text: string): string {
  if (!text.startsWith(MARK)) return text;
  if (!isReference(text)) return text.slice(1);
  const body = source.content(owner, text.slice(1));
  if (body === undefined) throw new Error(`The content ${text.slice(1)} is missing.`);
  return JSON.parse(body) as string;
}

/** The same hash for the same value, whatever the order of its fields. An undefined field counts as missing. */
export function canonicalHash(value: unknown): Uint8Array {
  return Buffer.from(hash('sha256', JSON.stringify(value, sorted), 'hex'), 'hex');
}

function sorted(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
