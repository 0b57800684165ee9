import { randomBytes, randomUUID } from 'node:crypto';
import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ThroughlineError } from '../../src/core/errors.ts';
import { ProcessHealth } from '../../src/host/health.ts';
import type { StoreConnections } from '../../src/ports/store/census.ts';
import type { Store } from '../../src/ports/store.ts';
import { postgresSource } from '../../src/stores/postgres/copy-side.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { fill, mountSmall, NO_SMALL_DISK, unmount } from '../faults/full-disk/small-disk.ts';
import { until } from '../faults/harness/until.ts';
import { Network } from '../postgres/network.ts';
import { NO_POOLER, Pooler, SWAPPED, SWAPPED_FOR } from '../postgres/pooler.ts';
import { NO_POSTGRES, NOBODY, PostgresServer, postgresServer } from '../postgres/server.ts';
import { ANN, begun, claim, claimRequest, codeOf, enqueue, newConversation, update, worker } from './store/world.ts';

const server = postgresServer();

/** The error of an attempt to open, with everything that a log would show of it. */
async function refusal(url: string): Promise<{ error: ThroughlineError; shown: string }> {
  const error = await openPostgresStore({ url, connections: 2 }).then(
    async (store) => {
      await store.close();
      throw new Error('It was opened.');
    },
    (fault: ThroughlineError) => fault,
  );
  const { cause } = error;
  return { error, shown: [error.message, error.hint, String(cause), (cause as Error | undefined)?.stack].join('\n') };
}

if (NO_POSTGRES === null) describe('a PostgreSQL store', faults);
else test('the faults of a PostgreSQL store', (context) => context.skip(NO_POSTGRES ?? ''));

function faults(): void {
  test('says why it cannot be opened, and never shows the password', async () => {
    const secret = randomUUID();
    const role = `r_${secret.slice(0, 8)}`;
    await server().query(`CREATE ROLE ${role} LOGIN PASSWORD '${secret}'`);
    const gone = await refusal(`postgres://${role}:${secret}@127.0.0.1:1/postgres`);
    expect(gone.error).toMatchObject({ code: 'unreachable', message: expect.stringContaining('does not answer') });
    const missing = await refusal(server().url('no_such_database', role, secret));
    expect(missing.error).toMatchObject({ code: 'unreachable', message: expect.stringContaining('no such database') });
    const poor = await refusal(server().url(await server().database(), role, secret));
    expect(poor.error).toMatchObject({ code: 'storage_readonly', message: expect.stringContaining('may not create') });
    const stranger = await refusal(server().url('postgres', `${role}_2`, secret));
    expect(stranger.error).toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/refused the login: it has no such user, .* or it demands TLS/),
    });
    const plain = await refusal(`${server().url('postgres', role, secret)}&sslmode=verify-full`);
    expect(plain.error).toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/demands TLS .* does not offer it/),
    });
    for (const { shown } of [gone, missing, poor, stranger, plain]) expect(shown).not.toContain(secret);
  });

  test('refuses another encoding, and a schema that is two steps newer', async () => {
    const latin = await server().database('ENCODING LATIN1 TEMPLATE template0');
    expect((await refusal(server().url(latin))).error).toMatchObject({
      code: 'refused',
      message: expect.stringContaining('LATIN1'),
    });
    const newer = await server().database();
    await (await openPostgresStore({ url: server().url(newer) })).close();
    const step = () => server().query('UPDATE schema_version SET version = version + 1', [], newer);
    await step(); // what this version needs is still there
    await (await openPostgresStore({ url: server().url(newer) })).close();
    await expect(postgresSource(server().url(newer)), 'a copy would lack what is new').rejects.toMatchObject({
      code: 'storage_newer',
    });
    await step();
    expect((await refusal(server().url(newer))).error).toMatchObject({
      code: 'storage_newer',
      message: expect.stringMatching(/has the schema \d+ of a newer Throughline/),
      hint: expect.stringContaining('Start the newer version'),
    });
  });

  test('works beside a newer version that has added columns to its tables', async () => {
    const name = await server().database();
    const store = await openPostgresStore({ url: server().url(name), connections: 2 });
    const { conversation, turn, holder } = await begun(store);
    const added = ['turns', 'events', 'leases'].map(
      (table) => `ALTER TABLE ${table} ADD COLUMN newer int NOT NULL DEFAULT 0`,
    );
    await server().query([...added, 'UPDATE schema_version SET version = version + 1'].join('; '), [], name);
    await holder.write(update(turn.id, 'still here'));
    expect((await enqueue(store, conversation)).n).toBe(2);
    expect((await store.verify(ANN, conversation)).broken).toBeNull();
    await store.close();
  });

  test('reports a database that is read-only, and can still read it', async () => {
    const name = await server().database();
    const store = await openPostgresStore({ url: server().url(name), connections: 2 });
    const id = await newConversation(store);
    const readOnly = await server().database();
    await server().query(`ALTER DATABASE ${readOnly} SET default_transaction_read_only = on`);
    expect((await refusal(server().url(readOnly))).error.code).toBe('storage_readonly');
    await server().query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const other = await openPostgresStore({ url: server().url(name), connections: 2 }).catch((error) => error.code);
    expect(other).not.toBe('storage_readonly');
    expect(await codeOf(enqueue(other as Store, id))).toBe('storage_readonly');
    expect(await (other as Store).findConversation(ANN, id)).not.toBeNull();
    await (other as Store).close();
    await store.close();
  });

  test('refuses to open a replica, and can still read a database that has become one', async () => {
    const replica = new PostgresServer();
    onTestFinished(async () => {
      await replica.stop();
      replica.remove();
    });
    await replica.start();
    const url = replica.url(await replica.database());
    const health = new ProcessHealth();
    const store = await openPostgresStore({ url, connections: 2, health });
    const id = await newConversation(store);
    await replica.stop();
    writeFileSync(join(replica.folder, 'data/standby.signal'), '');
    await replica.start();
    expect((await refusal(url)).error).toMatchObject({
      code: 'storage_readonly',
      message: expect.stringContaining('replica'),
      hint: expect.stringContaining('primary'),
    });
    expect(await codeOf(enqueue(store, id))).toBe('storage_readonly');
    expect(health.reasons()).toMatchObject([{ code: 'storage_readonly', unready: false }]);
    expect((await store.findConversation(ANN, id))?.id).toBe(id);
    await store.close();
  });

  test('reports a full disk of the database server, can still read, and continues when there is space', async (context) => {
    const folder = join(server().folder, 'small');
    if (!mountSmall(folder, 24)) return context.skip(NO_SMALL_DISK);
    const { uid, gid } = NOBODY;
    if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
    await server().query(`CREATE TABLESPACE small LOCATION '${folder}'`);
    const name = await server().database('TABLESPACE small');
    onTestFinished(async () => {
      await server().query(`DROP DATABASE ${name} WITH (FORCE)`);
      await server().query('DROP TABLESPACE small');
      unmount(folder);
    });
    const health = new ProcessHealth();
    const store = await openPostgresStore({ url: server().url(name), connections: 2, health });
    const id = await newConversation(store);
    const large = async () => {
      const text = randomBytes(50_000).toString('hex');
      return (await enqueue(store, id, { prompt: [{ type: 'text', text }] })).n;
    };
    const makeSpace = fill(folder);
    const numbers = [0];
    const refused = async () => {
      // Tables have a little free space in their existing pages.
      for (;;) numbers.push(await large());
    };
    expect(await codeOf(refused())).toBe('storage_full');
    expect(health.reasons()).toMatchObject([{ code: 'storage_full', unready: false }]);
    expect((await store.findConversation(ANN, id))?.id).toBe(id);
    makeSpace();
    expect(await large()).toBe(numbers.length);
    expect(health.reasons()).toEqual([]);
    await store.close();
  });

  test('limits and counts its connections, and verbs wait for a free one', async () => {
    const url = server().url(await server().database());
    let read: () => StoreConnections = () => ({ most: 0, used: 0, idle: 0, waiting: 0 });
    const onConnections = (given: typeof read) => {
      read = given;
    };
    const store = await openPostgresStore({ url, connections: 2, onConnections });
    await newConversation(store);
    const asked = Array.from({ length: 20 }, () => store.listConversations(ANN, { limit: 1 }));
    expect(read().waiting).toBeGreaterThanOrEqual(18);
    await Promise.all(asked);
    const { used, idle } = read();
    expect(used + idle).toBe(2);
    expect((await store.measure()).connections).toMatchObject({ most: 2, waiting: 0 });
    await store.close();
  });

  test('several processes can open an empty database at the same moment', async () => {
    const url = server().url(await server().database());
    const stores = await Promise.all(Array.from({ length: 5 }, () => openPostgresStore({ url, connections: 2 })));
    const id = await newConversation(stores[0] as Store);
    expect((await stores[4]?.findConversation(ANN, id))?.id).toBe(id);
    await Promise.all(stores.map((store) => store.close()));
  });

  test('measures leases by the clock of the database, whatever the clocks of the servers say', async () => {
    const url = server().url(await server().database());
    const [a, b] = [await openPostgresStore({ url }), await openPostgresStore({ url })];
    const { conversation, turn, holder, fence } = await begun(a);
    expect(await a.renew([fence], 60_000)).toEqual([]);
    vi.useFakeTimers({ now: Date.now() + 86_400_000, toFake: ['Date'] });
    try {
      expect(await b.claim(claimRequest({ worker: worker('w2', 2), conversation }))).toBeNull();
      await holder.write(update(turn.id, 'still here'));
    } finally {
      vi.useRealTimers();
    }
    const last = (await a.findConversation(ANN, conversation))?.updatedAt ?? 0;
    expect(Math.abs(last - Date.now())).toBeLessThan(3_600_000);
    // The lease has expired: the next worker gets it, and the late writer is refused.
    await server().query('UPDATE leases SET ready_at = 0', [], new URL(url).pathname.slice(1));
    expect((await claim(b, { worker: worker('w2', 2), conversation })).fence.epoch).toBe(2);
    expect(await codeOf(holder.write(update(turn.id, 'too late')))).toBe('lease_lost');
    await Promise.all([a.close(), b.close()]);
  });

  test('finds by polling what was written without a notification', async () => {
    const url = server().url(await server().database());
    const store = await openPostgresStore({ url, connections: 2, pollMs: 20 });
    const heard = new Promise<void>((resolve) => {
      store.listen((moved) => {
        if (moved === null) resolve();
      });
    });
    await server().query("INSERT INTO facts VALUES ('', 'x', 'y')", [], new URL(url).pathname.slice(1));
    await heard;
    await store.close();
  });

  test('a server that is cut off in the middle of a transaction does not keep others waiting for longer than a lease', async (context) => {
    if (process.env.THROUGHLINE_LONG !== '1') return context.skip('takes ten seconds: npm run test:long');
    await using network = await Network.to(join(server().folder, 'socket/.s.PGSQL.5432'));
    const url = server().url(await server().database());
    const [a, b] = [await openPostgresStore({ url: network.url(url) }), await openPostgresStore({ url })];
    const conversation = await newConversation(a);
    network.cutAfter('FOR NO KEY UPDATE');
    const cut = enqueue(a, conversation).catch((error: ThroughlineError) => error.code);
    await until('it is cut', () => network.isCut);
    const began = performance.now();
    // A caller that meets the lock gets an error after a while, and tries again.
    const refused = new Set<string>();
    const accepted = await until('PostgreSQL has ended it', () =>
      enqueue(b, conversation).catch(({ code }: ThroughlineError) => void refused.add(code)),
    );
    expect(accepted.n).toBe(1);
    expect([...refused].filter((code) => code !== 'storage_busy')).toEqual([]);
    expect(performance.now() - began).toBeLessThan(45_000);
    network.heal();
    expect(await cut).toBe('storage_busy');
    await Promise.all([a.close(), b.close()]);
  });

  test('behind a pooler in transaction mode, a process sees by polling what another has written', async (context) => {
    if (NO_POOLER !== null) return context.skip(NO_POOLER);
    await using pooler = await Pooler.of(server());
    const url = pooler.url(await server().database());
    const open = () => openPostgresStore({ url, connections: 4, pollMs: 20 });
    const [a, b] = await Promise.all([open(), open()]);
    const conversation = await newConversation(a);
    const heard = new Promise<void>((resolve) => {
      b.listen(() => resolve());
    });
    const turns = await Promise.all(Array.from({ length: 12 }, () => enqueue(a, conversation)));
    await heard;
    expect(turns.map(({ n }) => n).toSorted((one, other) => one - other)).toEqual(turns.map((_, index) => index + 1));
    const { fence } = await claim(b, { worker: worker('w1', 1), conversation });
    expect(await codeOf(a.commit({ ...fence, epoch: fence.epoch - 1 }, 1, [update(turns[0]?.id ?? '', 'late')]))).toBe(
      'lease_lost',
    );
    expect((await a.events(ANN, conversation, { after: 0, limit: 100 })).length).toBeGreaterThan(12);
    await Promise.all([a.close(), b.close()]);
  });

  test('behind a pooler, "listen" names the server for notifications; another database is refused', async (context) => {
    if (NO_POOLER !== null) return context.skip(NO_POOLER);
    await using pooler = await Pooler.of(server());
    const name = await server().database();
    const url = pooler.urlWithListen(name, server());
    // No store polls during this test.
    const open = () => openPostgresStore({ url, connections: 2, pollMs: 3_600_000 });
    const [a, b] = await Promise.all([open(), open()]);
    const heard = new Promise<readonly string[] | null>((resolve) => {
      b.listen((moved) => resolve(moved));
    });
    const conversation = await newConversation(a);
    expect(await heard).toEqual([conversation]);
    await Promise.all([a.close(), b.close()]);

    // Behind the pooler, this name leads to another database.
    await server().query(`CREATE DATABASE ${SWAPPED}`);
    await server().query(`CREATE DATABASE ${SWAPPED_FOR}`);
    await (await openPostgresStore({ url: server().url(SWAPPED), connections: 1 })).close();
    const wrong = pooler.urlWithListen(SWAPPED, server());
    expect((await refusal(wrong)).error).toMatchObject({
      code: 'refused',
      message: expect.stringContaining('"listen"'),
    });
  });

  test('after any foreign notification on its channel, it continues and checks everything', async () => {
    const name = await server().database();
    const store = await openPostgresStore({ url: server().url(name), connections: 2, pollMs: 3_600_000 });
    const heard: (readonly string[] | null)[] = [];
    store.listen((moved) => heard.push(moved));
    const texts = ['', 'nonsense', 'null', '{"moved":{"length":1}}', '{"by":"b","moved":["id"]}'];
    for (const text of texts) await server().query('SELECT pg_notify($1, $2)', ['throughline', text], name);
    await until('all were heard', () => heard.length === texts.length);
    expect(heard).toEqual([null, null, null, null, ['id']]);
    await store.close();
  });

  test('reports a server that does not answer, and continues after it was restarted', async () => {
    const url = server().url(await server().database());
    const health = new ProcessHealth();
    const store = await openPostgresStore({ url, connections: 2, health });
    const id = await newConversation(store);
    await server().stop();
    expect(await codeOf(enqueue(store, id))).toBe('storage_busy');
    expect(await codeOf(store.findConversation(ANN, id))).toBe('storage_busy');
    expect(health.reasons()).toMatchObject([{ code: 'storage_busy', unready: true }]);
    await server().start();
    // Nobody has written yet: the store checks by itself.
    await until('it is well again', () => health.reasons().length === 0);
    expect((await enqueue(store, id)).n).toBe(1);
    await store.close();
    expect(await codeOf(store.findConversation(ANN, id))).toBe('closed');
  });
}
