import { type Json, type Packed, pack, separate } from '../../shared/content.ts';
import type { Database } from '../file/database.ts';

/** A value whose long strings are in `contents` already, under these hashes. */
interface Stored extends Json {
  readonly hashes: readonly string[];
}

const KEEP = 'INSERT INTO contents (owner, hash, body) VALUES (?, ?, ?) ON CONFLICT (owner, hash) DO NOTHING';
const LINK =
  'INSERT INTO content_links (turn, content, owner) SELECT ?, no, owner FROM contents WHERE owner = ? AND hash = ? ON CONFLICT DO NOTHING';

export function storeValue(db: Database, owner: string, value: unknown): Stored {
  const { json, refs, bodies } = separate(value);
  return { json, refs, hashes: keep(db, owner, bodies) };
}

/** The same for what is long and seldom read. */
export function packValue(db: Database, owner: string, value: unknown) {
  const { bytes, refs, bodies } = pack(value);
  return { bytes, refs, hashes: keep(db, owner, bodies) };
}

function keep(db: Database, owner: string, bodies: Packed['bodies']): string[] {
  for (const [name, body] of bodies) db.run(KEEP, owner, name, body);
  return [...bodies.keys()];
}

/** Records which contents a turn uses, so that unused ones can be found. */
export function linkContents(db: Database, owner: string, turn: number, hashes: readonly string[]): void {
  for (const name of hashes) db.run(LINK, turn, owner, name);
}
