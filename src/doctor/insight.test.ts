import { expect, test } from 'vitest';
import { ThroughlineError } from '../core/errors.ts';
import type { Holding } from '../ports/store/leases.ts';
import { insightOf } from './insight.ts';

/** `held`: how many conversations are held; null: they cannot be read. */
function insight(held: number | null) {
  const one = { conversation: 'c', key: null, title: '', leftMs: 1, open: 0, sessions: [] };
  const holder = { pid: 1, started: '1', boot: 'b', namespace: 'n' };
  const fails = async () => {
    throw new ThroughlineError('storage_damaged', 'Damaged.');
  };
  const store = {
    measure: fails,
    diskUse: async () => (held === null ? fails() : { sandboxes: 2, bytes: 7 }),
    holdings: async (_: string, limit: number) =>
      held === null ? fails() : new Array<Holding>(Math.min(held, limit)).fill({ ...one, holder }),
    countHoldings: async () => held ?? fails(),
  };
  const clock = { now: () => 0, monotonic: () => 0 } as Parameters<typeof insightOf>[0]['clock'];
  const processes = { self: () => holder };
  return insightOf({ store, sandboxes: { list: fails }, clock, processes }, '1', async () => []).look('ann');
}

test.each([
  [0, 0, 0],
  [500, 500, 0],
  [503, 500, 3],
])('of %i leases, %i are listed, and %i more are counted', async (held, listed, more) => {
  const { leases, moreLeases } = await insight(held);
  expect([leases?.length, moreLeases]).toEqual([listed, more]);
});

test('a part that cannot be read is null; the rest is returned', async () => {
  expect(await insight(null)).toEqual({ store: null, sandboxes: null, diskUse: null, leases: null, moreLeases: null });
  expect(await insight(1)).toMatchObject({ store: null, diskUse: { sandboxes: 2, bytes: 7 }, moreLeases: 0 });
});
