import { expect, test } from 'vitest';
import type { PublicTurn } from '../../core/public/turn.ts';
import type { Turn } from '../../core/turn/turn.ts';
import type { Store } from '../../ports/store.ts';
import type { Telemetry } from '../../ports/telemetry.ts';
import { observed } from './observed-store.ts';

const FENCE = { conversation: 'c', owner: 'local', epoch: 1 };
const BEGIN = { write: 'begin', turn: 't' } as const;

test('a turn that begins under a held lease is reported once, when that is stored, without internals', async () => {
  const turn = { id: 't', conversation: 'c', owner: 'ann', state: 'queued', attempt: 0, startedAt: null, sent: null };
  const begun: PublicTurn[] = [];
  const telemetry = { turnBegun: (one: PublicTurn) => begun.push(one) } as unknown as Telemetry;
  let isFull = true;
  const real = {
    nextTurn: async () => ({ turn: turn as unknown as Turn }),
    async commit() {
      if (isFull) throw new Error('full');
      return { seq: 1, open: 1 };
    },
  } as unknown as Store;
  const store = observed(real, telemetry, { now: () => 7, monotonic: () => 0 });
  await store.nextTurn(FENCE, ['a']);
  await expect(store.commit(FENCE, 1, [BEGIN])).rejects.toThrow('full');
  expect(begun).toEqual([]);
  isFull = false;
  await store.commit(FENCE, 1, [BEGIN]);
  // A repeat changes nothing.
  await store.commit(FENCE, 1, [BEGIN]);
  expect(begun).toMatchObject([{ id: 't', conversationId: 'c', state: 'running', attempt: 1, startedAt: 7 }]);
  expect(begun[0]).not.toHaveProperty('conversation');
});
