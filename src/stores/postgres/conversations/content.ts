import type { TurnRecord } from '../../../core/turn/record.ts';
import type { Turn } from '../../../core/turn/turn.ts';
import { type ContentSource, type Json, type Packed, pack, referencesIn, separate } from '../../shared/content.ts';
import { pageOf, readable } from '../../shared/page.ts';
import { type RecordRow, recordOf, type TurnRow, turnOf } from '../../shared/rows.ts';
import type { Sql, TxSql } from '../server/connect.ts';

/** A value whose long strings are in `contents` already, under these hashes. */
interface Stored extends Json {
  readonly hashes: readonly string[];
}

// DO UPDATE also locks contents that are known: nobody deletes them as unused before they are linked.
const KEEP = `
  INSERT INTO contents (owner, hash, body)
  SELECT DISTINCT ON (c.owner, c.hash) c.owner, c.hash, c.body FROM unnest($1::text[], $2::text[], $3::text[]) AS c (owner, hash, body)
  ORDER BY c.owner, c.hash ON CONFLICT (owner, hash) DO UPDATE SET hash = excluded.hash`;
const LINK = `
  INSERT INTO content_links (turn, content, owner) SELECT $1, no, owner FROM contents WHERE owner = $2 AND hash = ANY($3::text[])
  ON CONFLICT DO NOTHING`;
const FETCH = 'SELECT hash, body FROM contents WHERE owner = $1 AND hash = ANY($2::text[])';

export function storeValue(sql: TxSql, owner: string, value: unknown): Stored {
  const { json, refs, bodies } = separate(value);
  return { json, refs, hashes: keep(sql, owner, bodies) };
}

/** The same for what is long and seldom read. */
export function packValue(sql: TxSql, owner: string, value: unknown) {
  const { bytes, refs, bodies } = pack(value);
  return { bytes, refs, hashes: keep(sql, owner, bodies) };
}

function keep(sql: TxSql, owner: string, bodies: Packed['bodies']): string[] {
  const hashes = [...bodies.keys()];
  const owners = hashes.map(() => owner);
  if (hashes.length > 0) sql.runFirst(KEEP, owners, hashes, [...bodies.values()]);
  return hashes;
}

/** Records which contents a turn uses, so that unused ones can be found. */
export function linkContents(sql: TxSql, owner: string, turn: number, hashes: readonly string[]): void {
  if (hashes.length > 0) sql.run(LINK, turn, owner, hashes);
}

/** The separate strings of some values, read at once. */
export async function contentsOf(sql: Sql, owner: string, values: readonly Json[]): Promise<ContentSource> {
  const hashes = values.flatMap(({ json, refs }) => (refs === 0 ? [] : referencesIn(json)));
  const rows = hashes.length === 0 ? [] : await sql.all<{ hash: string; body: string }>(FETCH, owner, hashes);
  const bodies = new Map(rows.map(({ hash, body }) => [hash, body]));
  return { content: (_, hash) => bodies.get(hash) };
}

export async function readTurn(sql: Sql, row: TurnRow): Promise<Turn> {
  return turnOf(await contentsOf(sql, row.owner, [{ json: row.prompt, refs: row.prompt_refs }]), row);
}

export async function readRecord(sql: Sql, row: RecordRow): Promise<TurnRecord> {
  const values = [
    { json: row.prompt, refs: row.prompt_refs },
    { json: row.body, refs: row.body_refs },
  ];
  return recordOf(await contentsOf(sql, row.owner, values), row);
}

/**
 * The values of rows of several conversations or tasks, without those that are damaged. `fetch`: at most `limit` rows, from the first or after
 * the last one. A page of damaged rows alone would look like the end: then the next one is read.
 */
export async function pageOfReadable<Row, T>(
  sql: Sql,
  limit: number,
  fetch: (last: Row | undefined) => Promise<Row[]>,
  read: (row: Row) => T,
): Promise<T[]> {
  for (let last: Row | undefined; ; ) {
    const rows = await fetch(last);
    const page = pageOf(readable(sql, rows, read), (one) => one);
    if (page.length > 0 || rows.length === 0 || rows.length < limit) return page;
    last = rows.at(-1);
  }
}
