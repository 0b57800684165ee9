import { expect, test } from 'vitest';
import { BenchHome } from '../../../bench/support/bench-home.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { Store } from '../../ports/store.ts';
import { storeTrackers } from './tracker.ts';

/** A tracker whose disk is full: these verbs of the store fail until they are removed from the set. */
async function trackerOn(home: BenchHome) {
  const { parts } = await home.open();
  const failing = new Set<keyof Store>();
  const store = new Proxy(parts.store, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (failing.has(name as keyof Store))
        return () => Promise.reject(new ThroughlineError('storage_full', 'No space left.'));
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const settings = { ...parts.settings, leaseMs: 500 };
  return { tracker: storeTrackers({ ...parts, store, settings }).tracker('local'), failing };
}

test('when the disk is full a call fails, and works again when there is space', async () => {
  await using home = new BenchHome();
  const { tracker, failing } = await trackerOn(home);
  await tracker.trackRequest('req1', 'agent456', null, { prompt: 'Hello.' });
  failing.add('commit');
  await expect(tracker.completeRequest('req1', { reply: 'Hi.' })).rejects.toMatchObject({ code: 'storage_full' });
  failing.clear();
  expect(await tracker.completeRequest('req1', { reply: 'Hi.' })).toMatchObject({ status: 'completed' });
  await tracker.close();
});

test.each<[string, ...(keyof Store)[]]>([
  ['cannot begin', 'commit'],
  ['cannot begin and whose lock cannot be released', 'commit', 'release'],
])(
  'a request that %s because the disk is full is ended by the next one, after the time of a lease at most',
  async (_, ...verbs) => {
    await using home = new BenchHome();
    const { tracker, failing } = await trackerOn(home);
    for (const verb of verbs) failing.add(verb);
    await expect(tracker.trackRequest('req1', 'agent456', null)).rejects.toMatchObject({ code: 'storage_full' });
    failing.clear();
    const next = await tracker.trackRequest('req2', 'agent456', null, { waitMs: 60_000 });
    expect(next).toMatchObject({ status: 'pending' });
    expect(await tracker.getRequest('req1')).toMatchObject({ status: 'failed', lock: null });
    await tracker.close();
  },
);
