import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ProcessHealth } from '../../src/host/health.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { until } from '../faults/harness/until.ts';
import { Network } from '../postgres/network.ts';
import { NO_POSTGRES, postgresServer } from '../postgres/server.ts';
import { ANN, begun, codeOf, enqueue, newConversation, record, spec, update } from './store/world.ts';

const server = postgresServer();

if (NO_POSTGRES === null) describe('a PostgreSQL store', limits);
else test('the limits of a PostgreSQL store', (context) => context.skip(NO_POSTGRES ?? ''));

/** Locks these tables, so that nobody can add a row until the returned function is called. */
async function hold(database: string, tables: string): Promise<() => Promise<void>> {
  const client = await server().connect(database);
  await client.query(`BEGIN; LOCK TABLE ${tables} IN SHARE ROW EXCLUSIVE MODE`);
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}

/** How many sessions of the database wait for a lock. */
async function waiting(database: string): Promise<number> {
  const [row] = await server().query(
    `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`,
    [database],
  );
  return row?.count as number;
}

function limits(): void {
  test('long work of many owners leaves connections for turns', async () => {
    const database = await server().database();
    const store = await openPostgresStore({ url: server().url(database) });
    const { conversation, turn, holder, fence } = await begun(store);
    const history = { records: [record(turn)], sessions: [] };
    const owners = ['bob', 'cleo', 'dora'];
    const sources = await Promise.all(
      owners.map(async (owner) => ({ owner, id: (await store.importConversation(owner, spec(), history)).id })),
    );
    const release = await hold(database, 'records');
    const forks = sources.flatMap(({ owner, id }) => Array.from({ length: 4 }, () => store.fork(owner, id, 1, spec())));
    const imports = owners.map((owner) => store.importConversation(owner, spec(), history));
    await until('some of them wait', async () => (await waiting(database)) >= 3);
    // None of these needs the locked table.
    await holder.write(update(turn.id, 'still here'));
    expect((await enqueue(store, conversation)).n).toBe(2);
    expect(await store.renew([fence], 60_000)).toEqual([]);
    expect(await waiting(database)).toBeLessThanOrEqual(4);
    await release();
    expect(await Promise.all([...forks, ...imports])).toHaveLength(15);
    await store.close();
  });

  test('ends a search that takes too long, and reports that', async () => {
    const database = await server().database();
    const store = await openPostgresStore({ url: server().url(database), searchMs: 200 });
    await begun(store);
    const client = await server().connect(database);
    await client.query('BEGIN; LOCK TABLE words');
    await expect(store.search(ANN, 'anything', 10)).rejects.toMatchObject({
      code: 'too_large',
      message: 'The search took longer than 0.2 s and was ended.',
      hint: expect.stringContaining('rarer words'),
    });
    expect(await waiting(database), 'the server has ended it as well').toBe(0);
    await client.query('ROLLBACK');
    await client.end();
    expect(await store.search(ANN, 'anything', 10)).toEqual([]);
    await store.close();
  });

  test('reports a conversation that another process has locked, and everything else continues', async () => {
    const database = await server().database();
    const health = new ProcessHealth();
    const store = await openPostgresStore({ url: server().url(database), health, lockMs: 200 });
    const { conversation, fence } = await begun(store);
    const other = await begun(store);
    const client = await server().connect(database);
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM leases l JOIN conversations c ON c.no = l.conv WHERE c.id = $1 FOR UPDATE OF l', [
      conversation,
    ]);
    await expect(enqueue(store, conversation)).rejects.toMatchObject({
      code: 'storage_busy',
      message: expect.stringContaining('lock'),
    });
    expect(health.reasons(), 'the others can be written').toEqual([]);
    expect(await store.renew([fence, other.fence], 5_000), 'a locked lease is not lost').toEqual([]);
    await other.holder.write(update(other.turn.id, 'still here'));
    await client.query('ROLLBACK');
    await client.end();
    expect((await enqueue(store, conversation)).n).toBe(2);
    await store.close();
  });

  test('a connection for notifications that is being made while the store is closed ends with it', async () => {
    await using network = await Network.to(join(server().folder, 'socket/.s.PGSQL.5432'));
    const database = await server().database();
    const store = await openPostgresStore({ url: network.url(server().url(database)), connections: 1 });
    const ours = () => server().query('SELECT pid, query FROM pg_stat_activity WHERE datname = $1', [database]);
    const hearing = async () => (await ours()).find(({ query }) => String(query).startsWith('LISTEN'))?.pid;
    const before = network.connections;
    await server().query('SELECT pg_terminate_backend($1)', [await hearing()]);
    await until('its end is noticed', async () => (await hearing()) === undefined);
    network.cut();
    await until('it connects again', () => network.connections > before);
    const closed = store.close();
    network.heal();
    await closed;
    await until('nothing of it is left', async () => (await ours()).length === 0, { ms: 20_000 });
  });

  test('connections that have become silent are replaced within the time of a lease', async () => {
    await using network = await Network.to(join(server().folder, 'socket/.s.PGSQL.5432'));
    const url = server().url(await server().database());
    const store = await openPostgresStore({ url: network.url(url), connections: 4, pollMs: 200 });
    const other = await openPostgresStore({ url, connections: 1 });
    const { conversation, turn, holder, fence } = await begun(store);
    await Promise.all(Array.from({ length: 8 }, () => store.findConversation(ANN, conversation)));
    const heard: (readonly string[] | null)[] = [];
    store.listen((moved) => void heard.push(moved));

    network.cut();
    network.healForNewOnes();
    const began = performance.now();
    const refused: string[] = [];
    await until('it renews', async () => {
      const code = await codeOf(store.renew([fence], 4_000));
      if (code !== null) refused.push(code);
      return code === null;
    });
    // In an earlier version, each silent connection was waited for for 60 seconds.
    expect(performance.now() - began).toBeLessThan(30_000);
    expect(new Set(refused)).toEqual(new Set(['storage_busy']));
    await holder.write(update(turn.id, 'still here'));
    await until('it hears what others tell', async () => {
      const id = await newConversation(other);
      return until('it is told', () => heard.flat().includes(id), { ms: 2_000 }).catch(() => false);
    });
    await Promise.all([store.close(), other.close()]);
  });
}
