import type { ConversationEvent, Receipt, Turn } from 'throughline/client';
import { expect, test } from 'vitest';
import { itemOf, LiveParts } from './model.ts';
import { afterEvents, NOTHING } from './state.ts';

const turn = (n: number, facts: Partial<Turn>) =>
  itemOf({ id: `turn ${n}`, n, state: 'completed', sent: null, imported: false, ...facts } as Turn);

test.each<[string, Partial<Turn>, number]>([
  ['sent', { sent: { at: 1 } as unknown as Turn['sent'] }, 3],
  ['imported or copied', { imported: true }, 3],
  ['cancelled before it was sent', { state: 'cancelled' }, 2],
])('the receipt of a warm-up after a turn that was %s belongs to the last turn of the history', (_, facts, n) => {
  const items = [turn(1, { imported: true }), turn(2, { imported: true }), turn(3, facts)];
  const state = { ...NOTHING, turns: new Map(items.map((item) => [item.turn.n, item])), last: 3 };
  const payload = { rung: 'transcript', turn: null, attempt: 1, carried: 1, dropped: 1 } as Receipt;
  const event = { conversationId: 'c', seq: 9, kind: 'restore.receipt', turnId: null, at: 1, payload };
  const { change } = afterEvents(state, [event as ConversationEvent], () => new LiveParts());
  expect([...(change.receipts ?? [])]).toEqual([[n, [payload]]]);
});
