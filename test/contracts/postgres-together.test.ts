// Calls to a PostgreSQL store at the same moment share statements. Each caller must get its own answer, or its own error.
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { WorkerInfo } from '../../src/ports/store/leases.ts';
import type { Store } from '../../src/ports/store.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { until } from '../faults/harness/until.ts';
import { Network } from '../postgres/network.ts';
import { NO_POSTGRES, postgresServer } from '../postgres/server.ts';
import {
  AGENT,
  ANN,
  BOB,
  beginNext,
  claim as claimNow,
  claimRequest,
  codeOf,
  enqueue,
  newConversation,
  newTurn,
  prompt,
  spec,
  update,
  worker,
} from './store/world.ts';

const server = postgresServer();

if (NO_POSTGRES === null) describe('many callers of a PostgreSQL store at once', together);
else test('many callers of a PostgreSQL store at once', (context) => context.skip(NO_POSTGRES ?? ''));

const MANY = 40;

const urls = new Map<Store, string>();

async function opened(): Promise<Store> {
  const url = server().url(await server().database());
  const store = await openPostgresStore({ url });
  urls.set(store, url);
  onTestFinished(() => store.close());
  return store;
}

async function claimed(store: Store, by?: WorkerInfo) {
  const conversation = await newConversation(store);
  await enqueue(store, conversation);
  return claimNow(store, { conversation, leaseMs: 600_000, ...(by && { worker: by }) });
}

/** The sessions of a database that wait for a lock. */
const WAITING = `SELECT count(*)::int FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'`;

/** The statements that all connections of this process send during the work. */
async function sentDuring(work: () => Promise<unknown>): Promise<string[]> {
  const { prototype } = pg.Client as unknown as { prototype: { query: (...args: unknown[]) => unknown } };
  const { query } = prototype;
  const sent: string[] = [];
  prototype.query = function (...args) {
    const [asked] = args as [string | { text: string }];
    sent.push(typeof asked === 'string' ? asked : asked.text);
    return query.apply(this, args);
  };
  try {
    await work();
  } finally {
    prototype.query = query;
  }
  return sent;
}

interface Sends {
  query: (...args: unknown[]) => unknown;
  readonly connection: { readonly stream: { destroy(): void } };
}

/** The next COMMIT succeeds, and then its connection fails with an error code that the store does not know. */
function loseCommit(): void {
  const { prototype } = pg.Client as unknown as { prototype: Sends };
  const { query } = prototype;
  const restore = () => {
    prototype.query = query;
  };
  onTestFinished(restore);
  prototype.query = function (this: Sends, ...args) {
    const answer = query.apply(this, args);
    if (args[0] !== 'COMMIT') return answer;
    restore();
    return (answer as Promise<unknown>).then(() => {
      this.connection.stream.destroy();
      throw Object.assign(new Error('write EPROTO'), { code: 'EPROTO' });
    });
  };
}

function together() {
  test('share few statements, and each gets its own answer; only the caller of something missing gets an error', async () => {
    const store = await opened();
    const ids = await Promise.all(
      Array.from({ length: MANY }, (_, i) => newConversation(store, { key: `c${i}` }, i % 2 === 0 ? ANN : BOB)),
    );
    await Promise.all(ids.map((id, i) => enqueue(store, id, {}, i % 2 === 0 ? ANN : BOB)));
    const found: unknown[] = [];
    const sent = await sentDuring(async () => {
      found.push(...(await Promise.all(ids.map((id) => store.findConversation(ANN, id)))));
    });
    expect(found.map((one) => (one as { id: string } | null)?.id ?? null)).toEqual(
      ids.map((id, i) => (i % 2 === 0 ? id : null)),
    );
    expect(sent.length).toBeLessThan(MANY / 2);
    const events = await Promise.all(
      ids.map((id) => store.events(ANN, id, { after: 0, limit: 10, bytes: 1_000 }).catch(({ code }) => code)),
    );
    const kinds = ['conversation.created', 'conversation.titled', 'turn.queued'];
    for (const [i, read] of events.entries()) {
      if (i % 2 === 1) expect(read).toBe('not_found');
      else expect((read as { kind: string }[]).map(({ kind }) => kind)).toEqual(kinds);
    }
  });

  test('share few transactions for their writes, and a refused write does not affect the others', async () => {
    const store = await opened();
    const ids = await Promise.all(Array.from({ length: MANY }, () => newConversation(store)));
    const turns = await Promise.all(ids.map((id) => enqueue(store, id)));
    const claims = await Promise.all(ids.map((conversation) => store.claim(claimRequest({ conversation }))));
    const before = (await store.measure()).commits;
    const codes = await Promise.all(
      claims.map((claim, i) => {
        const { conversation = '', owner = '', epoch = 0 } = claim?.fence ?? {};
        // Every fourth has lost its lease; every fourth names the turn of another conversation.
        const fence = { conversation, owner, epoch: i % 4 === 1 ? epoch - 1 : epoch };
        const of = turns[i % 4 === 2 ? i + 1 : i];
        return codeOf(store.commit(fence, 1, [update(of?.id ?? '', `said ${i}`)]));
      }),
    );
    expect(codes).toEqual(ids.map((_, i) => [null, 'lease_lost', 'not_found', null][i % 4]));
    expect((await store.measure()).commits - before).toBeLessThan(MANY / 4);
    for (const [i, id] of ids.entries()) {
      const events = await store.events(ANN, id, { after: 0, limit: 10 });
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, place) => place + 1));
      expect(events.filter(({ kind }) => kind === 'turn.update')).toHaveLength(i % 4 === 0 || i % 4 === 3 ? 1 : 0);
      expect((await store.verify(ANN, id)).broken).toBe(null);
    }
  });

  test('get no error because of a row of another caller that the database refuses', async () => {
    const store = await opened();
    const ids = await Promise.all(Array.from({ length: 8 }, () => newConversation(store)));
    const taken = await enqueue(store, ids[0] ?? '');
    const asked = ids.map((id, i) => (i === 3 ? newTurn(id, { id: taken.id }) : newTurn(id)));
    const codes = await Promise.all(asked.map((turn) => codeOf(store.enqueue(ANN, turn))));
    expect(codes).toEqual(ids.map((_, i) => (i === 3 ? 'conflict' : null)));
    const open = await Promise.all(ids.map(async (id) => (await store.findConversation(ANN, id))?.open));
    expect(open).toEqual(ids.map((_, i) => [2, 1, 1, 0][i] ?? 1));
  });

  test('do not wait for a conversation that another process has locked, except its own caller', async () => {
    const store = await opened();
    const ids = await Promise.all(Array.from({ length: 4 }, () => newConversation(store)));
    const name = new URL(urls.get(store) ?? '').pathname.slice(1);
    const other = await server().connect(name);
    await other.query('BEGIN');
    await other.query('SELECT 1 FROM leases WHERE conv = (SELECT no FROM conversations WHERE id = $1) FOR UPDATE', [
      ids[0],
    ]);
    const done: string[] = [];
    const all = ids.map((id) => enqueue(store, id).then(() => done.push(id)));
    await Promise.all(all.slice(1));
    expect(done.toSorted()).toEqual(ids.slice(1).toSorted());
    await other.query('COMMIT'); // a ROLLBACK would be counted below
    await all[0];
    await other.end();
  });

  test('find free connections although another process has locked many conversations', async () => {
    const url = server().url(await server().database());
    const store = await openPostgresStore({ url, connections: 6, lockMs: 300_000 });
    onTestFinished(() => store.close());
    const { fence } = await claimed(store);
    const ids = await Promise.all(Array.from({ length: 20 }, () => newConversation(store)));
    const other = await server().connect(new URL(url).pathname.slice(1));
    await other.query('BEGIN');
    await other.query(
      'SELECT 1 FROM leases WHERE conv IN (SELECT no FROM conversations WHERE id = ANY($1)) FOR UPDATE',
      [ids],
    );
    const locked = Promise.all(ids.map((id) => enqueue(store, id)));
    await enqueue(store, await newConversation(store));
    expect(await store.renew([fence], 5_000)).toEqual([]);
    expect(await store.findConversation(ANN, ids[0] ?? '')).toMatchObject({ open: 0 });
    await other.query('COMMIT'); // a ROLLBACK would be counted below
    expect(await locked).toHaveLength(20);
    await other.end();
  });

  test('do not share a transaction if one is a first prompt to a key that exists by now and the other uses that conversation', async () => {
    const store = await opened();
    await claimed(store); // so that the worker is known
    const conversation = await newConversation(store, { key: 'notes' });
    const creates = { ...spec({ key: 'notes' }), id: 'another-id' };
    const [claim, { turn }] = await Promise.all([
      store.claim(claimRequest({ conversation, withoutTurn: true })),
      store.enqueue(ANN, newTurn(creates.id, { creates })),
    ]);
    expect(turn.conversation).toBe(conversation);
    expect(await store.findConversation(ANN, conversation)).toMatchObject({ open: 1 });
    expect((await enqueue(store, conversation)).n).toBe(2);
    if (claim === null) throw new Error('It was not claimed.');
    expect((await beginNext(store, claim.fence, [AGENT]))?.turn.id).toBe(turn.id);
    expect((await store.verify(ANN, conversation)).broken).toBe(null);
  });

  test('have their calls for one conversation done in the order of the calls', async () => {
    const store = await opened();
    const ids = await Promise.all(Array.from({ length: 5 }, () => newConversation(store)));
    const turns = await Promise.all(ids.flatMap((id) => Array.from({ length: 6 }, () => enqueue(store, id))));
    expect(turns.map(({ n }) => n)).toEqual(ids.flatMap(() => [1, 2, 3, 4, 5, 6]));
  });

  test.each([
    ['before', 0],
    ['after', 1],
  ] as const)(
    'each get an error, and can try again, when the connection ends %s their common COMMIT has arrived',
    async (side, stored) => {
      await using network = await Network.to(join(server().folder, 'socket/.s.PGSQL.5432'));
      const store = await openPostgresStore({ url: network.url(server().url(await server().database())) });
      onTestFinished(() => store.close());
      const ids = await Promise.all(Array.from({ length: 8 }, () => newConversation(store)));
      const turns = ids.map((id) => newTurn(id, { requestId: `request of ${id}` }));
      network.breakAt(side, 'COMMIT');
      const codes = await Promise.all(turns.map((turn) => codeOf(store.enqueue(ANN, turn))));
      expect(codes).toEqual(ids.map(() => 'storage_busy'));
      const open = async () => Promise.all(ids.map(async (id) => (await store.findConversation(ANN, id))?.open));
      // The server may still be working on it.
      await until('the transaction has ended', async () => (await open()).every((count) => count === stored));
      const again = await Promise.all(turns.map((turn) => store.enqueue(ANN, turn)));
      expect(again.map(({ duplicate, turn }) => [duplicate, turn.n])).toEqual(ids.map(() => [stored === 1, 1]));
      expect(await open()).toEqual(ids.map(() => 1));
    },
  );

  test('have nothing repeated after a COMMIT whose answer was lost, whatever error the driver reports', async () => {
    const store = await opened();
    const ids = await Promise.all(Array.from({ length: 8 }, () => newConversation(store)));
    loseCommit();
    const codes = await Promise.all(ids.map((id) => codeOf(enqueue(store, id))));
    expect(codes, 'not "conflict" with their own turn').toEqual(ids.map(() => 'storage_busy'));
    for (const id of ids) expect(await store.findConversation(ANN, id)).toMatchObject({ open: 1 });
    loseCommit();
    expect(await codeOf(newConversation(store, { key: 'notes' })), 'in a transaction of its own').toBe('storage_busy');
    expect(await newConversation(store, { key: 'notes' }), 'it is there').not.toBe('');
  });

  test('do not deadlock when they write the same long texts in different orders', async () => {
    const a = await opened();
    const url = urls.get(a) ?? '';
    const name = new URL(url).pathname.slice(1);
    const b = await openPostgresStore({ url });
    onTestFinished(() => b.close());
    const texts = Array.from({ length: 8 }, (_, i) => `${i} ${'x'.repeat(20_000)}`);
    const ids = await Promise.all([...texts, ...texts].map(() => newConversation(a)));
    const ask = (store: Store, which: readonly string[], order: readonly string[]) =>
      order.map((text, i) => enqueue(store, which[i] ?? '', { prompt: prompt(text) }));
    await Promise.all(ask(a, ids, texts));
    const other = await server().connect(name);
    await other.query('BEGIN');
    await other.query('SELECT 1 FROM contents WHERE body LIKE $1 FOR UPDATE', ['%4 xx%']);
    const sent = await sentDuring(async () => {
      const all = [...ask(a, ids.slice(0, 8), texts), ...ask(b, ids.slice(8), texts.toReversed())];
      await until('both wait', async () => {
        const [row] = await server().query(WAITING, [name]);
        return row?.count === 2;
      });
      await other.query('COMMIT'); // a ROLLBACK would be counted below
      await Promise.all(all);
    });
    await other.end();
    expect(sent.filter((text) => text === 'ROLLBACK')).toEqual([]);
  });

  test('do not deadlock when they take over from the same workers in different orders', async () => {
    const a = await opened();
    const url = urls.get(a) ?? '';
    const name = new URL(url).pathname.slice(1);
    const b = await openPostgresStore({ url });
    onTestFinished(() => b.close());
    const [mine, yours] = [worker('mine', 11), worker('yours', 12)];
    for (const [store, own] of [
      [a, mine],
      [b, yours],
    ] as const)
      await claimed(store, own); // so that the worker is known
    const gone = ['w1', 'w2', 'w3'].map((id, i) => worker(id, 20 + i));
    // Each holds two conversations, one for each of the two stores to take over.
    const ids: [string, string][] = [];
    for (const one of gone)
      ids.push([(await claimed(a, one)).fence.conversation, (await claimed(a, one)).fence.conversation]);
    await server().query(
      "UPDATE leases SET ready_at = 0 WHERE worker IN (SELECT no FROM workers WHERE id LIKE 'w%')",
      [],
      name,
    );
    const other = await server().connect(name);
    await other.query("BEGIN; SELECT 1 FROM workers WHERE id = 'w2' FOR UPDATE");
    const take = (store: Store, own: WorkerInfo, which: readonly string[]) =>
      which.map((conversation) => store.claim(claimRequest({ worker: own, conversation })));
    const sent = await sentDuring(async () => {
      const all = [
        ...take(
          a,
          mine,
          ids.map(([one]) => one),
        ),
        ...take(b, yours, ids.map(([, two]) => two).toReversed()),
      ];
      await until('both wait', async () => (await server().query(WAITING, [name]))[0]?.count === 2);
      await other.query('COMMIT'); // a ROLLBACK would be counted below
      expect((await Promise.all(all)).map((one) => one !== null)).toEqual(all.map(() => true));
    });
    await other.end();
    expect(sent.filter((text) => text === 'ROLLBACK')).toEqual([]);
    expect(await server().query("SELECT id FROM workers WHERE id LIKE 'w%'", [], name)).toEqual([]);
  });

  test('make one turn when two servers get the first prompt to a new key with the same request id', async () => {
    const a = await opened();
    const b = await openPostgresStore({ url: urls.get(a) ?? '' });
    onTestFinished(() => b.close());
    const first = () => newTurn('', { requestId: 'r1', creates: spec({ key: 'notes' }) });
    const { prototype } = pg.Client as unknown as { prototype: Sends };
    const { query } = prototype;
    onTestFinished(() => {
      prototype.query = query;
    });
    let looks = 0;
    let other: Promise<unknown> | null = null;
    prototype.query = function (this: Sends, ...args) {
      const [asked] = args as [string | { text: string }];
      const isLook = /c\.key = |t\.request_id = /.test(typeof asked === 'string' ? asked : asked.text);
      if (isLook) looks += 1;
      // Between the two lookups of the first store, the other one stores its own turn.
      if (looks !== 2 || other !== null) return query.apply(this, args);
      other = b.enqueue(ANN, first());
      return other.then(() => query.apply(this, args));
    };
    const mine = await a.enqueue(ANN, first());
    expect(mine.duplicate).toBe(true);
    expect(await other).toMatchObject({ duplicate: false, turn: { id: mine.turn.id } });
  });
}
