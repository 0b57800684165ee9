import { type ContentSource, type Json, referencesIn } from '../../shared/content.ts';
import { pageOf, readable } from '../../shared/page.ts';
import type { Sql } from '../server/connect.ts';

const FETCH = 'SELECT hash, body FROM contents WHERE owner = $1 AND hash = ANY($2::text[])';

/** The separate strings of some values, read at once. */
export async function contentsOf(sql: Sql, owner: string, values: readonly Json[]): Promise<ContentSource> {
  const hashes = values.flatMap(({ json, refs }) => (refs === 0 ? [] : referencesIn(json)));
  const rows = hashes.length === 0 ? [] : await sql.all<{ hash: string; body: string }>(FETCH, owner, hashes);
  const bodies = new Map(rows.map(({ hash, body }) => [hash, body]));
  return { content: (_, hash) => bodies.get(hash) };
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
