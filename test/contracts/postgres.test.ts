import type { Client } from 'pg';
import { afterAll, describe, test } from 'vitest';
import type { Store } from '../../src/ports/store.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, postgresServer } from '../postgres/server.ts';
import { type Damage, type StoreSite, storeContract } from './store.contract.ts';

const server = postgresServer();

if (NO_POSTGRES === null) storeContract({ name: 'PostgreSQL', site });
else describe('a PostgreSQL store', () => test('keeps to the contract', (context) => context.skip(NO_POSTGRES ?? '')));

let database: Promise<{ name: string; client: Client }> | null = null;
const time = { now: 0, monotonic: 0 };
/** Stores of earlier tests, for reuse. A new one would have to connect, and PostgreSQL would plan every statement again. */
const spare: Store[] = [];
afterAll(async () => {
  await Promise.all(spare.map((store) => store.close()));
  await (await database)?.client.end();
});

/** One database for all tests, emptied for each. To create a new one takes longer than most tests. */
async function site(): Promise<StoreSite> {
  database ??= newDatabase();
  const { name, client } = await database;
  await empty(client);
  const opened = new Set<Store>();
  const stops: (() => void)[] = [];
  Object.assign(time, { now: Date.UTC(2026, 0, 15, 12), monotonic: 5_000 });
  return {
    // Ignores the boot: leases use the clock of the database.
    async open() {
      const store = spare.pop() ?? (await newStore(name));
      opened.add(store);
      return {
        ...store,
        listen(listener) {
          const stop = store.listen(listener);
          stops.push(stop);
          return stop;
        },
        close() {
          opened.delete(store);
          return store.close();
        },
      };
    },
    pass(ms) {
      time.now += ms;
      time.monotonic += ms;
    },
    jump(ms) {
      time.now += ms;
    },
    contents: () => dump(client),
    damage: (what) => damage(client, what),
    async destroy() {
      for (const stop of stops) stop();
      spare.push(...opened);
    },
  };
}

function newStore(name: string): Promise<Store> {
  const clock = { now: () => time.now, monotonic: () => time.monotonic };
  return openPostgresStore({ url: server().url(name), clock, connections: 4, pollMs: 3_600_000 });
}

async function newDatabase(): Promise<{ name: string; client: Client }> {
  const name = await server().database();
  await (await openPostgresStore({ url: server().url(name), connections: 1 })).close();
  return { name, client: await server().connect(name) };
}

async function tables(client: Client): Promise<string[]> {
  const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1");
  return rows.map(({ tablename }) => String(tablename)).filter((table) => table !== 'schema_version');
}

let known: Promise<string[]> | null = null;

/** Deletes rows, without checking references. TRUNCATE is slower: it makes new files for every table and index. */
async function empty(client: Client): Promise<void> {
  known ??= tables(client);
  const own = (await known).filter((table) => table !== 'facts').map((table) => `DELETE FROM ${table}`);
  const statements = ['SET session_replication_role = replica', ...own, "DELETE FROM facts WHERE name <> 'log'"];
  await client.query(statements.join('; '));
}

/** Every row of every table, in one statement. */
async function dump(client: Client): Promise<string> {
  known ??= tables(client);
  const all = (await known).map(
    (table) => `SELECT '${table}' AS of, json_agg(t ORDER BY t::text)::text AS rows FROM ${table} t`,
  );
  return JSON.stringify((await client.query(`${all.join(' UNION ALL ')} ORDER BY 1`)).rows);
}

const DAMAGES: Record<Damage['kind'], string> = {
  payload: `UPDATE events SET payload = replace(payload, '{', '{"extra":1,') WHERE`,
  time: 'UPDATE events SET at = at + 1 WHERE',
  missing: 'DELETE FROM events WHERE',
  tail: 'DELETE FROM events WHERE',
};

async function damage(client: Client, { kind, conversation, seq }: Damage): Promise<void> {
  const which = `seq ${kind === 'tail' ? '>=' : '='} $1 AND conv = (SELECT no FROM conversations WHERE id = $2)`;
  await client.query(`${DAMAGES[kind]} ${which}`, [seq, conversation]);
}
