// What many callers ask of a PostgreSQL store at the same moment shares statements: each gets its own answer, or its own error.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/ports/store.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, postgresServer } from '../postgres/server.ts';
import {
  AGENT,
  ANN,
  BOB,
  claim as claimNow,
  claimRequest,
  codeOf,
  enqueue,
  newConversation,
  newTurn,
  spec,
  update,
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

async function claimed(store: Store) {
  const conversation = await newConversation(store);
  await enqueue(store, conversation);
  return claimNow(store, { conversation, leaseMs: 600_000 });
}

/** The statements that all connections of this process send meanwhile. */
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

function together() {
  test('each reads its own, from few statements; what is not there is missing for its caller alone', async () => {
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

  test('writes of many are few transactions, and one that is refused changes nothing for the others', async () => {
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

  test('a row that the database refuses is refused to its caller alone', async () => {
    const store = await opened();
    const ids = await Promise.all(Array.from({ length: 8 }, () => newConversation(store)));
    const taken = await enqueue(store, ids[0] ?? '');
    const asked = ids.map((id, i) => (i === 3 ? newTurn(id, { id: taken.id }) : newTurn(id)));
    const codes = await Promise.all(asked.map((turn) => codeOf(store.enqueue(ANN, turn))));
    expect(codes).toEqual(ids.map((_, i) => (i === 3 ? 'conflict' : null)));
    const open = await Promise.all(ids.map(async (id) => (await store.findConversation(ANN, id))?.open));
    expect(open).toEqual(ids.map((_, i) => [2, 1, 1, 0][i] ?? 1));
  });

  test('a conversation that another process has locked does not hold up the others', async () => {
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
    await other.query('ROLLBACK');
    await all[0];
    await other.end();
  });

  test('conversations that another process has locked leave connections for everything else', async () => {
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
    await other.query('ROLLBACK');
    expect(await locked).toHaveLength(20);
    await other.end();
  });

  test('the first prompt to a key that exists by now shares no transaction with another verb of that conversation', async () => {
    const store = await opened();
    await claimed(store); // the worker is known from then on
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
    expect((await store.begin(claim.fence, [AGENT]))?.id).toBe(turn.id);
    expect((await store.verify(ANN, conversation)).broken).toBe(null);
  });

  test('what is asked of one conversation happens in the order in which it was asked', async () => {
    const store = await opened();
    const ids = await Promise.all(Array.from({ length: 5 }, () => newConversation(store)));
    const turns = await Promise.all(ids.flatMap((id) => Array.from({ length: 6 }, () => enqueue(store, id))));
    expect(turns.map(({ n }) => n)).toEqual(ids.flatMap(() => [1, 2, 3, 4, 5, 6]));
  });
}
