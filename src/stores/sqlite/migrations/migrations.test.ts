import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { openAt, temporaryFolder } from '../../../../test/contracts/sqlite-folder.ts';
import { CURRENT_SCHEMA } from './current.ts';
import { MIGRATIONS } from './list.ts';

test('a new database equals an empty one after all migrations', () => {
  const hint = 'write it again with "node scripts/sqlite-schema.ts"';
  const byMigrations = contentOf(MIGRATIONS);
  const byScript = contentOf([CURRENT_SCHEMA]);
  expect(byMigrations.schema.length).toBeGreaterThan(90);
  expect(byScript.schema, hint).toEqual(byMigrations.schema);
  expect(byMigrations.rows.facts).toHaveLength(2);
  expect(byScript.rows, `${hint}; it has ROWS`).toEqual(byMigrations.rows);
});

test('every new database has a log of its own', () => {
  const ids = [1, 2].map(() => logOf(contentOf([CURRENT_SCHEMA]).db));
  expect(ids).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^[0-9a-f]{32}$/)]);
  expect(ids[0]).not.toBe(ids[1]);
});

/** What the scripts make of an empty database: its schema, and the rows of every table. The id of the log is always another one. */
function contentOf(scripts: readonly string[]) {
  const db = new DatabaseSync(':memory:');
  onTestFinished(() => db.close());
  for (const sql of scripts) db.exec(sql);
  const schema = db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name').all();
  const tables = schema.filter(({ type }) => type === 'table').map(({ name }) => String(name));
  const rows = Object.fromEntries(tables.map((name) => [name, db.prepare(`SELECT * FROM ${name}`).all()]));
  const log = logOf(db);
  return {
    db,
    schema,
    rows: { ...rows, facts: rows.facts?.map((row) => ({ ...row, ...(row.value === log && { value: 'log' }) })) },
  };
}

function logOf(db: DatabaseSync): unknown {
  return db.prepare("SELECT value FROM facts WHERE name = 'log'").get()?.value;
}

test('a prompt that was stored only in the record of a turn is moved to the turn', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const old = new DatabaseSync(file, { enableForeignKeyConstraints: false });
  for (const sql of MIGRATIONS.slice(0, 7)) old.exec(sql);
  old.exec('PRAGMA application_id = 0x7468726c; PRAGMA user_version = 7');
  const turn = old.prepare(`
    INSERT INTO turns (no, owner, conv, n, id, queued_seq, state, agent, prompt, prompt_refs, options, attempt, was_sent,
      cancel_requested, usage, created_at) VALUES (?, 'ann', 1, ?, ?, 1, 'completed', 'a', ?, 0, '{}', 1, 1, 0, '{}', 0)`);
  const record = old.prepare(
    `INSERT INTO records (turn, owner, conv, n, place, body, body_refs) VALUES (?, 'ann', 1, ?, ?, ?, ?)`,
  );
  const prompts = ['[]', '[]', '[{"own":1}]'];
  const bodies = ['{"prompt":[{"text":"\\u0000ab"}]}', '{"parts":[]}', '{"prompt":[{"later":1}]}'];
  for (const [i, prompt] of prompts.entries()) turn.run(i + 1, i + 1, `t${i}`, prompt);
  for (const [i, body] of bodies.entries()) record.run(i + 1, i + 1, i + 1, body, 1);
  old.close();
  await (await openAt(file)).close();
  const db = new DatabaseSync(file);
  expect(db.prepare('SELECT prompt, prompt_refs AS refs FROM turns ORDER BY no').all()).toEqual([
    { prompt: '[{"text":"\\u0000ab"}]', refs: 1 },
    { prompt: '[]', refs: 0 },
    { prompt: '[{"own":1}]', refs: 0 },
  ]);
  db.close();
});

test('sessions from before storages were recorded get the name of their agent as storage', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const old = new DatabaseSync(file, { enableForeignKeyConstraints: false });
  for (const sql of MIGRATIONS.slice(0, 3)) old.exec(sql);
  old.exec('PRAGMA application_id = 0x7468726c; PRAGMA user_version = 3');
  const insert = old.prepare(`
    INSERT INTO sessions (owner, conv, ref, id, agent, origin, watermark, dropped, state, turns, usage, opened_at, used_at,
      used_seq) VALUES ('ann', 1, ?, 'one', ?, 'new', 0, 0, 'live', 0, '{}', 0, 0, 0)`);
  for (const agent of ['a', 'b']) insert.run(`ref-${agent}`, agent);
  old.close();
  await (await openAt(file)).close();
  const db = new DatabaseSync(file);
  expect(db.prepare('SELECT agent, storage FROM sessions ORDER BY no').all()).toEqual([
    { agent: 'a', storage: 'a' },
    { agent: 'b', storage: 'b' },
  ]);
  db.close();
});

test('sessions that a crash left live become dormant, except those of trackers and of turns that have not ended', async () => {
  const file = join(temporaryFolder(), 'store.db');
  const old = new DatabaseSync(file, { enableForeignKeyConstraints: false });
  for (const sql of MIGRATIONS.slice(0, 18)) old.exec(sql);
  old.exec('PRAGMA application_id = 0x7468726c; PRAGMA user_version = 18');
  const lease = old.prepare(`
    INSERT INTO leases (conv, owner, driver, place, next_n, next_seq, chain, head, history, epoch, pending)
    VALUES (?, 'ann', ?, 'here', 1, 1, x'00', 0, 0, 1, 0)`);
  lease.run(1, 'worker');
  lease.run(2, 'tracker');
  const session = old.prepare(`
    INSERT INTO sessions (owner, conv, ref, id, agent, origin, watermark, dropped, state, turns, usage, opened_at, used_at,
      used_seq, storage) VALUES ('ann', ?, ?, ?, 'a', 'new', 0, 0, ?, 0, '{}', 0, 0, 0, 'a')`);
  const given = [
    ...([
      [1, 'left', 'live'],
      [1, 'sent', 'live'],
      [1, 'gone', 'lost'],
      [2, 'tracked', 'live'],
    ] as const),
  ];
  for (const [conv, id, state] of given) session.run(conv, id, id, state);
  old.exec(`
    INSERT INTO turns (no, owner, conv, n, id, queued_seq, state, agent, prompt, prompt_refs, options, attempt, was_sent,
      cancel_requested, usage, created_at, sent, session_id)
    VALUES (1, 'ann', 1, 1, 't', 1, 'running', 'a', '[]', 0, '{}', 1, 1, 0, '{}', 0, '{}', 'sent')`);
  old.close();
  await (await openAt(file)).close();
  const db = new DatabaseSync(file);
  const states = db.prepare('SELECT id, state FROM sessions ORDER BY no').all();
  expect(states.map(({ id, state }) => `${id} ${state}`)).toEqual([
    ...['left dormant', 'sent live', 'gone lost', 'tracked live'],
  ]);
  db.close();
});
