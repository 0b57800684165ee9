import type { Inspection } from '../../../ports/store/census.ts';
import type { Database } from '../file/database.ts';
import { storageFault, unlessDamaged } from '../file/faults.ts';

const MOST_FAULTS = 20;
const CHECK = `PRAGMA integrity_check(${MOST_FAULTS})`;
/** From an index: the rows themselves may be damaged. */
const CONVERSATIONS = 'SELECT no, id FROM conversations INDEXED BY sqlite_autoindex_conversations_1 ORDER BY no';
const NAMES = 'SELECT owner, id, key FROM conversations WHERE no = ?';
/** Everything that is stored of a conversation. */
const PARTS = [
  'SELECT * FROM conversations WHERE no = ?',
  'SELECT * FROM leases WHERE conv = ?',
  'SELECT * FROM turns WHERE conv = ?',
  'SELECT * FROM records WHERE conv = ?',
  'SELECT * FROM events WHERE conv = ?',
  'SELECT * FROM sessions WHERE conv = ?',
  'SELECT * FROM receipts WHERE conv = ?',
  'SELECT * FROM permissions WHERE conv = ?',
  'SELECT * FROM totals WHERE conv = ?',
  'SELECT m.* FROM sessions s JOIN mirrors m ON m.session = s.no WHERE s.conv = ?',
  'SELECT c.* FROM turns t JOIN content_links l ON l.turn = t.no JOIN contents c ON c.no = l.content WHERE t.conv = ?',
];

/** Rows that SQLite can read, and we cannot: a check of pages does not notice them. */
const UNREADABLE = [
  {
    of: 'turns',
    sql: 'SELECT conv FROM turns WHERE NOT (json_valid(prompt) AND json_valid(options) AND json_valid(usage))',
  },
  { of: 'records', sql: 'SELECT conv FROM records WHERE NOT json_valid(body)' },
  { of: 'events', sql: 'SELECT conv FROM events WHERE payload IS NOT NULL AND NOT json_valid(payload)' },
  { of: 'sessions', sql: 'SELECT conv FROM sessions WHERE NOT json_valid(usage)' },
  { of: 'receipts', sql: 'SELECT conv FROM receipts WHERE NOT json_valid(body)' },
];

export function inspect(db: Database): Inspection {
  const unreadable = UNREADABLE.flatMap(({ of, sql }) =>
    unlessDamaged(() => db.all<{ conv: number }>(sql), []).map(({ conv }) => ({ of, conv })),
  );
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

/** A check that breaks off has found something, too. */
function faultsIn(db: Database): string[] {
  try {
    const found = db.all<{ integrity_check: string }>(CHECK).map((row) => row.integrity_check);
    return found.length === 1 && found[0] === 'ok' ? [] : found.flatMap((text) => text.split('\n'));
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
