import { randomBytes } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openPostgresStore } from '../../../src/stores/postgres/store.ts';
import { enqueue } from '../../contracts/store/world.ts';
import type { ServedProcess } from '../../e2e/http/support/served-process.ts';
import { NO_POSTGRES, PostgresServer } from '../../postgres/server.ts';
import { Servers } from '../../postgres/servers.ts';
import { until } from '../harness/until.ts';

// A part of the database is damaged. That is reported, the conversation is set aside, and the others continue.

async function world() {
  const postgres = new PostgresServer();
  await postgres.start();
  const database = await postgres.database();
  const all = new Servers(postgres.url(database));
  onTestFinished(async () => {
    await all[Symbol.asyncDispose]();
    await postgres.stop();
    postgres.remove();
  });
  const rows = (sql: string) => postgres.query(sql, [], database);
  const home = all.newHome();
  return { postgres, database, home, rows, serve: () => all.serve(home) };
}

async function say({ caller }: ServedProcess, key: string, prompt: string): Promise<string> {
  const { turn } = await caller.ok('POST', `/conversations/${key}/turns`, { prompt });
  return (await caller.finished(turn)).turn.state;
}

/** Leaves a turn as a process that has ended does: accepted, and not begun. */
async function leaveTurn(url: string, conversation: string, text = 'Are you there?'): Promise<void> {
  const store = await openPostgresStore({ url, connections: 1 });
  await enqueue(store, conversation, { prompt: [{ type: 'text', text }] }, 'local');
  await store.close();
}

/** Checks what an operator sees of the damage. */
async function expectReported({ caller, running }: ServedProcess, id: string): Promise<void> {
  await running.until('stderr', new RegExp(`conversation ${id} is set aside`));
  const { status, body } = await caller.get('//healthz');
  expect([status, body.status]).toEqual([200, 'degraded']);
  expect(body.reasons).toContainEqual({ code: 'storage_damaged' });
  const { findings } = await caller.ok('GET', '/doctor');
  const subjects = findings.map(({ subject }: { subject: string }) => subject);
  expect(subjects).toContain('database');
  expect(subjects).toContain('conversation bad');
  expect(subjects).not.toContain('conversation good');
}

test('a row that is not JSON: its conversation is set aside until the row is repaired, and the others continue', async (context) => {
  if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
  const { postgres, database, rows, serve } = await world();
  const first = await serve();
  for (const key of ['bad', 'good', 'listed']) expect(await say(first, key, 'hello')).toBe('completed');
  first.running.kill('SIGTERM');
  await first.running.ended;
  const [{ id }] = (await rows("SELECT id FROM conversations WHERE key = 'bad'")) as [{ id: string }];
  await leaveTurn(postgres.url(database), id);
  await rows("UPDATE turns SET options = '[{' WHERE ended_at IS NULL");
  await rows("UPDATE conversations SET restore = '[{' WHERE key = 'listed'");

  const server = await serve();
  await expectReported(server, id);
  expect(await say(server, 'good', 'hello')).toBe('completed');
  const { conversations } = await server.caller.ok('GET', '/conversations?limit=1');
  expect(conversations, 'a page is not empty because of damage').toHaveLength(1);
  const keys = (await server.caller.ok('GET', '/conversations')).conversations.map(({ key }: { key: string }) => key);
  expect(keys.toSorted()).toEqual(['bad', 'good']);
  const [{ epoch }] = (await rows(
    `SELECT epoch::int FROM leases l JOIN conversations c ON c.no = l.conv WHERE c.id = '${id}'`,
  )) as [{ epoch: number }];
  expect(epoch, 'no loop').toBeLessThan(10);

  await rows("UPDATE turns SET options = '{}' WHERE options = '[{'");
  await until('it continues', async () => (await rows('SELECT 1 FROM turns WHERE ended_at IS NULL')).length === 0);
});

test('a page that PostgreSQL cannot read: the conversation on it is set aside, and the others continue', async (context) => {
  if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
  const { postgres, database, rows, serve } = await world();
  const first = await serve();
  for (const key of ['bad', 'good']) expect(await say(first, key, 'hello')).toBe('completed');
  first.running.kill('SIGTERM');
  await first.running.ended;
  const [{ id }] = (await rows("SELECT id FROM conversations WHERE key = 'bad'")) as [{ id: string }];
  // So long that it is stored in separate (TOAST) pages.
  await leaveTurn(postgres.url(database), id, randomBytes(12_000).toString('hex'));
  const files = (await rows(
    `SELECT pg_relation_filepath(reltoastrelid) AS file, pg_relation_size(reltoastrelid)::int AS size
     FROM pg_class WHERE relname IN ('turns', 'contents') AND pg_relation_size(reltoastrelid) > 0`,
  )) as { file: string; size: number }[];
  expect(files.length).toBeGreaterThan(0);
  await postgres.stop();
  for (const { file, size } of files) {
    const fd = openSync(join(postgres.folder, 'data', file), 'r+');
    for (let at = 0; at < size; at += 8_192) writeSync(fd, 'damaged', at + 100);
    closeSync(fd);
  }
  await postgres.start();

  const server = await serve();
  await expectReported(server, id);
  expect(await say(server, 'good', 'hello')).toBe('completed');
  expect((await server.caller.ok('GET', '/conversations')).conversations).toHaveLength(2);
});
