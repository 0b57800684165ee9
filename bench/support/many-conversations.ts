import type { PostgresServer } from '../../test/postgres/server.ts';

/** The numbers of copies begin here, far above those of the sequences. */
const BASE = 1_000_000_000;
const OWNERS = 1_000;

/** The columns that differ in each copy; `g` is its number. All other columns are copied. */
const TABLES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  conversations: { no: `${BASE} + g`, id: `'copy-' || g`, key: `'copy-' || g` },
  leases: { conv: `${BASE} + g`, worker: 'NULL', ready_at: 'NULL' },
  turns: { no: `${BASE} + g`, conv: `${BASE} + g`, id: `'turn-' || g`, request_id: 'NULL' },
  records: { turn: `${BASE} + g`, conv: `${BASE} + g` },
  words: { turn: `${BASE} + g` },
  events: { conv: `${BASE} + g`, turn: `CASE WHEN o.turn IS NOT NULL THEN ${BASE} + g END` },
  sessions: { no: `${BASE} + g`, conv: `${BASE} + g`, ref: `'ref-' || g`, id: `'session-' || g`, state: `'dormant'` },
  receipts: { no: `${BASE} + g`, conv: `${BASE} + g` },
  totals: { conv: `${BASE} + g` },
  told: { no: `${BASE} * 2 + g * 100 + o.no % 100`, conv: `${BASE} + g`, turn: `${BASE} + g`, session: `'ref-' || g` },
};

/** Adds copies of a conversation that has one turn, for a thousand owners. */
export async function addConversations(
  server: PostgresServer,
  database: string,
  { key, count }: { readonly key: string; readonly count: number },
): Promise<void> {
  const [{ no } = { no: 0 }] = await server.query('SELECT no FROM conversations WHERE key = $1', [key], database);
  for (const [table, differs] of Object.entries(TABLES)) {
    const sql =
      'SELECT column_name AS name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position';
    const columns = (await server.query(sql, [table], database)).map(({ name }) => String(name));
    const values = columns.map((name) => {
      if (name === 'owner') return `'owner-' || g % ${OWNERS}`;
      return differs[name] ?? `o.${name}`;
    });
    const own =
      table === 'conversations' ? 'no' : table === 'words' ? '(SELECT conv FROM turns WHERE no = o.turn)' : 'conv';
    await server.query(
      `INSERT INTO ${table} (${columns}) SELECT ${values} FROM ${table} o, generate_series(1, ${count}) g WHERE ${own} = $1`,
      [no],
      database,
    );
  }
  await server.query('VACUUM ANALYZE', [], database);
}
