// What many callers ask of a PostgreSQL store at the same moment shares statements: each gets its own answer, or its own error.
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/ports/store.ts';
import { openPostgresStore } from '../../src/stores/postgres/store.ts';
import { NO_POSTGRES, postgresServer } from '../postgres/server.ts';
import { ANN, BOB, enqueue, newConversation } from './store/world.ts';

const server = postgresServer();

if (NO_POSTGRES === null) describe('many callers of a PostgreSQL store at once', together);
else test('many callers of a PostgreSQL store at once', (context) => context.skip(NO_POSTGRES ?? ''));

const MANY = 40;

async function opened(): Promise<Store> {
  const store = await openPostgresStore({ url: server().url(await server().database()) });
  onTestFinished(() => store.close());
  return store;
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
}
