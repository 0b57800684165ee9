import { isDamage } from '../../../core/errors.ts';
import type { Inspection } from '../../../ports/store/census.ts';
import { convOf, JSON_OF_CONVERSATIONS, JSON_OF_OTHERS, TABLES_OF_CONVERSATION } from '../../shared/rows.ts';
import type { Sql } from '../server/connect.ts';
import { isEnded, isUnknown, storageFault } from '../server/faults.ts';

/*
 * Finds damage without special rights. Only an administrator can check all pages (`pg_amcheck`). But PostgreSQL reads every row here, and refuses those
 * whose page is damaged. It checks the JSON itself, so that no row is sent to us.
 */
const MOST = 1_000;
/** Of a database where pages are damaged: so many conversations are read one by one, to name those that cannot be. */
const MOST_READ = 10_000;

/** NULL is neither, and so does not count. */
const isUnreadable = (names: readonly string[]) => names.map((name) => `${name} IS NOT JSON`).join(' OR ');
const CONVERSATIONS = `SELECT no, owner, id, key FROM conversations ORDER BY no LIMIT ${MOST_READ}`;
const BY_NO = 'SELECT owner, id, key FROM conversations WHERE no = ANY($1::bigint[])';
/** All of a conversation. A hash of the row reads its long values, too. */
const PARTS = TABLES_OF_CONVERSATION.map(
  (table) => `SELECT sum(hashtext(x::text)) FROM ${table} x WHERE ${convOf(table)} = $1`,
);
const CONTENTS = `
  SELECT sum(hashtext(c.body)) FROM turns t JOIN content_links l ON l.turn = t.no JOIN contents c ON c.no = l.content WHERE t.conv = $1`;

/** `read`: runs it with a limit of time for each statement. */
export async function inspect(read: <T>(look: (sql: Sql) => Promise<T>) => Promise<T>): Promise<Inspection> {
  const faults: string[] = [];
  const convs = new Set<number>();
  let isPage = false;
  const find = async (table: string, names: readonly string[], conv: string) => {
    const text = `SELECT ${conv} AS conv FROM ${table} WHERE ${isUnreadable(names)} LIMIT ${MOST}`;
    const found = await orFault(read((sql) => sql.all<{ conv: number | null }>(text)));
    if (typeof found === 'string') {
      if (found !== '') faults.push(`${table}: ${found}`);
      isPage ||= found !== '';
      return;
    }
    if (found.length > 0) faults.push(`a row of ${table} is not JSON`);
    for (const { conv: no } of found) if (no !== null) convs.add(no);
  };
  for (const [table, names] of Object.entries(JSON_OF_CONVERSATIONS)) await find(table, names, convOf(table));
  for (const [table, names] of Object.entries(JSON_OF_OTHERS)) await find(table, names, 'NULL::bigint');
  if (isPage) for (const no of await unreadable(read)) convs.add(no);
  if (convs.size === 0) return { faults, damaged: [] };
  const damaged = await orFault(read((sql) => sql.all<Inspection['damaged'][number]>(BY_NO, [...convs])));
  return { faults, damaged: typeof damaged === 'string' ? [] : damaged };
}

/** The conversations of which a row cannot be read. */
async function unreadable(read: Parameters<typeof inspect>[0]): Promise<number[]> {
  const all = await orFault(read((sql) => sql.all<{ no: number }>(CONVERSATIONS)));
  const found: number[] = [];
  for (const { no } of typeof all === 'string' ? [] : all) {
    for (const text of [...PARTS, CONTENTS]) {
      if (typeof (await orFault(read((sql) => sql.one(text, no)))) !== 'string') continue;
      found.push(no);
      break;
    }
  }
  return found;
}

/** A text says what kept it from being read; an empty one: it took too long, or this PostgreSQL is too old (below 16) to check JSON. */
async function orFault<T>(reading: Promise<T>): Promise<T | string> {
  try {
    return await reading;
  } catch (error) {
    if (isEnded(error) || isUnknown(error)) return '';
    const fault = storageFault(error) ?? error;
    if (isDamage(fault)) return fault.message;
    throw fault;
  }
}
