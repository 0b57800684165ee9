import { isDeepStrictEqual } from 'node:util';
import type { Store } from '../../../src/ports/store.ts';
import { byUse, type Conversation, head, open, type Session, type Turn } from './model.ts';

/** Throws when the two differ, and shows both. */
export function same(what: string, actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Error(`${what}: the store has ${JSON.stringify(actual)}, the rules say ${JSON.stringify(expected)}`);
}

const ALL = { after: 0, limit: 1_000 };

/**
 * Compares what can be read of a conversation with the model (R1–R6, R9). Events up to `seen` were checked before. Records and receipts are
 * checked only if `seen` is 0: at the end of every sequence.
 */
export async function checkConversation(store: Store, expected: Conversation, now: number, seen = 0): Promise<void> {
  const { id } = expected;
  const found = await store.findConversation('owner', id);
  const { history } = expected;
  const counts = [found?.head, found?.historyCount, found?.lastSeq];
  same('head, length of the history, last number', counts, [head(expected), history.length, expected.events.length]);
  await checkEvents(store, expected, seen);
  await checkTurns(store, expected);
  await checkSessions(store, expected);
  if (expected.permissions.length > 0) {
    const asked = (await store.permissions('owner', { conversation: id })).map(({ id: one, state }) => [one, state]);
    same(
      'the permissions',
      new Map(asked as [string, string][]),
      new Map(expected.permissions.map((one) => [one.id, one.state])),
    );
  }
  const { open: pending, lock } = await store.summary('owner', id);
  same('the open turns', pending, open(expected).length);
  const holder = expected.expires > now ? expected.holder : null;
  same('the lock', lock && [lock.holder, lock.epoch], holder === null ? null : [holder, expected.epoch]);
  if (seen > 0) return;
  const records = await store.recordsAfter('owner', id, ALL);
  same(
    'the history',
    records.map((record) => record.n),
    history,
  );
  same('the receipts', (await store.receipts('owner', id)).length, expected.receipts.length);
}

async function checkEvents(store: Store, { id, events }: Conversation, seen: number): Promise<void> {
  const found = await store.events('owner', id, { ...ALL, after: seen });
  const expected = events.slice(seen).map(([kind, turn], i) => [seen + i + 1, kind, turn]);
  same(
    'the events',
    found.map((event) => [event.seq, event.kind, event.turn]),
    expected,
  );
}

async function checkTurns(store: Store, { id, turns }: Conversation): Promise<void> {
  const shown = (turn: Omit<Turn, 'sent' | 'wasSent'>) => {
    const { id: turnId, n, state, agent, attempt, cancelRequested, sessionId } = turn;
    return [turnId, n, state, agent, attempt, cancelRequested, sessionId];
  };
  const found = await store.turns('owner', id, ALL);
  same('the turns', found.map(shown), turns.map(shown));
  same('the turns sent', sentOf(found), sentOf(turns.map((turn) => ({ ...turn, sent: turn.sent || null }))));
}

async function checkSessions(store: Store, expected: Conversation): Promise<void> {
  const shown = ({ ref, id, agent, state, watermark }: Omit<Session, 'used'>) => [ref, id, agent, state, watermark];
  const found = await store.sessions('owner', expected.id);
  same('the lineage', found.map(shown), byUse(expected).map(shown));
  if (found.some((session) => session.watermark > head(expected))) throw new Error('a watermark is beyond the head');
}

/** The open turns that were sent. After its end, a turn may or may not show that it was sent. */
function sentOf(turns: readonly { id: string; state: string; sent: unknown }[]): string[] {
  const isOpen = (state: string) => state === 'queued' || state === 'running' || state === 'waiting';
  return turns.filter((turn) => isOpen(turn.state) && turn.sent !== null).map((turn) => turn.id);
}
