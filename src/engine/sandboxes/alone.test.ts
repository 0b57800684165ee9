import { expect, test } from 'vitest';
import { type Holding, whileHeld, whileUsed } from './alone.ts';

/** A store that answers every renewal only when the test says so, and lists what it was asked for. */
function slowStore() {
  const calls: string[] = [];
  const renewing = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<null>();
  const store = {
    holdSandbox: async () => {
      // `whileUsed` takes the lease at once; only later calls are renewals.
      const takes = how === 'shared' && calls.length === 0;
      calls.push('hold');
      if (takes) return null;
      renewing.resolve();
      await answer.promise;
      calls.push('renewed');
      return null;
    },
    releaseSandbox: async () => void calls.push('released'),
  };
  let how: 'alone' | 'shared' = 'alone';
  const holding = (as: typeof how) => {
    how = as;
    return {
      parts: { store, settings: { leaseMs: 3 } },
      worker: { id: 'we' },
      ...{ owner: 'ann', id: 'one', signal: new AbortController().signal },
    } as unknown as Holding;
  };
  return { calls, holding, renewing: renewing.promise, answer: () => answer.resolve(null) };
}

test.each(['alone', 'shared'] as const)(
  'a lease of a sandbox that is held %s is released after the renewal that is under way, so that it stays released',
  async (how) => {
    const { calls, holding, renewing, answer } = slowStore();
    const work = () => renewing;
    const held = how === 'alone' ? whileHeld(holding(how), work) : whileUsed(holding(how), work);
    await renewing;
    // The work has ended. The release must wait for the answer.
    await new Promise(setImmediate);
    expect(calls).not.toContain('released');
    answer();
    await held;
    expect(calls.at(-1)).toBe('released');
  },
);
