import type { Inspection } from '../../../ports/store/census.ts';
import { unpackValue } from '../../shared/content.ts';
import { convOf, JSON_OF_CONVERSATIONS, JSON_OF_OTHERS, TABLES_OF_CONVERSATION } from '../../shared/rows.ts';
import type { Database } from '../file/database.ts';
import { storageFault, unlessDamaged } from '../file/faults.ts';

const MOST_FAULTS = 20;
const CHECK = `PRAGMA integrity_check(${MOST_FAULTS})`;
/** From an index: the rows themselves may be damaged. */
const CONVERSATIONS = 'SELECT no, id FROM conversations INDEXED BY sqlite_autoindex_conversations_1 ORDER BY no';
const NAMES = 'SELECT owner, id, key FROM conversations WHERE no = ?';
/** Everything that is stored of a conversation. */
const PARTS = [
  ...TABLES_OF_CONVERSATION.map((table) => `SELECT * FROM ${table} WHERE ${convOf(table)} = ?`),
  'SELECT m.* FROM sessions s JOIN mirrors m ON m.session = s.no WHERE s.conv = ?',
  'SELECT c.* FROM turns t JOIN content_links l ON l.turn = t.no JOIN contents c ON c.no = l.content WHERE t.conv = ?',
];

/** NULL is neither valid nor not, and so does not count. */
const isUnreadable = (names: readonly string[]) => `NOT (${names.map((name) => `json_valid(${name})`).join(' AND ')})`;

function unreadableIn(columns: Readonly<Record<string, readonly string[]>>, conv: (table: string) => string) {
  return Object.entries(columns).map(([of, names]) => {
    return { of, sql: `SELECT ${conv(of)} AS conv FROM ${of} WHERE ${isUnreadable(names)}` };
  });
}

const UNREADABLE = [...unreadableIn(JSON_OF_CONVERSATIONS, convOf), ...unreadableIn(JSON_OF_OTHERS, () => 'NULL')];

const { conversations, turns, sessions, totals } = JSON_OF_CONVERSATIONS;
/** What is needed to run an open turn, or to cancel it. */
const NEEDED = [
  `SELECT 1 FROM conversations WHERE no = ? AND ${isUnreadable(conversations)}`,
  `SELECT 1 FROM turns WHERE conv = ? AND state IN ('queued', 'running') AND ${isUnreadable(turns)}`,
  `SELECT 1 FROM sessions WHERE conv = ? AND ${isUnreadable(sessions)}`,
  `SELECT 1 FROM totals WHERE conv = ? AND ${isUnreadable(totals)}`,
];

/** Whether damage may keep the open turns of a conversation from ever ending. */
export function isStuckByDamage(db: Database, conv: number): boolean {
  return NEEDED.some((sql) => unlessDamaged(() => db.one(sql, conv) !== undefined, true));
}

export function inspect(db: Database): Inspection {
  const unreadable = UNREADABLE.flatMap(({ of, sql }) =>
    unlessDamaged(() => db.all<{ conv: number | null }>(sql), []).map(({ conv }) => ({ of, conv })),
  );
  unreadable.push(...unlessDamaged(() => packedFaults(db), []));
  const faults = [...faultsIn(db), ...new Set(unreadable.map(({ of }) => `a row of ${of} is not JSON`))];
  if (faults.length === 0) return { faults, damaged: [] };
  const all = unlessDamaged(() => db.all<{ no: number; id: string }>(CONVERSATIONS), []);
  const isDamaged = (no: number) =>
    unreadable.some(({ conv }) => conv === no) || !PARTS.every((sql) => isWhole(db, sql, no));
  const damaged = all.filter(({ no }) => isDamaged(no));
  return {
    faults,
    damaged: damaged.map(({ no, id }) =>
      unlessDamaged(() => db.one<Inspection['damaged'][number]>(NAMES, no) ?? unnamed(id), unnamed(id)),
    ),
  };
}

const TOLD = 'SELECT conv, owner, body FROM told';

/** JSON that is stored compressed. */
function packedFaults(db: Database): { of: string; conv: number }[] {
  const faults: { of: string; conv: number }[] = [];
  for (const { conv, owner, body } of db.each<{ conv: number; owner: string; body: Uint8Array }>(TOLD)) {
    if (unlessDamaged(() => unpackValue(db, owner, body), undefined) === undefined) faults.push({ of: 'told', conv });
  }
  return faults;
}

/** A check that breaks off has found something, too. */
function faultsIn(db: Database): string[] {
  try {
    const found = db.all<{ integrity_check: string }>(CHECK).map((row) => row.integrity_check);
    // A line like "*** in database main ***" only says which of several databases it is.
    const faults = found.flatMap((text) => text.split('\n')).filter((line) => !line.startsWith('***'));
    return faults.length === 1 && faults[0] === 'ok' ? [] : faults;
  } catch (error) {
    const fault = storageFault(error);
    if (fault?.code !== 'storage_damaged') throw error;
    return [(error as Error).message];
  }
}

function isWhole(db: Database, sql: string, conv: number): boolean {
  return unlessDamaged(() => {
    for (const _ of db.each(sql, conv));
    return true;
  }, false);
}

function unnamed(id: string): Inspection['damaged'][number] {
  return { owner: '', id, key: null };
}
