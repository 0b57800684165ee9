import { expect, test } from 'vitest';
import { BenchHome } from '../../../bench/support/bench-home.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { Store } from '../../ports/store.ts';
import { storeTrackers } from './tracker.ts';

/** A tracker whose disk is full for the next `failing.count` commits. */
async function trackerOn(home: BenchHome, storageMs?: number) {
  const { parts } = await home.open();
  const settings = storageMs === undefined ? parts.settings : { ...parts.settings, storageMs };
  const failing = { count: 0 };
  const store = new Proxy(parts.store, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== 'commit') return typeof value === 'function' ? value.bind(target) : value;
      return (...args: Parameters<Store['commit']>) => {
        failing.count -= 1;
        if (failing.count >= 0) return Promise.reject(new ThroughlineError('storage_full', 'No room.'));
        return target.commit(...args);
      };
    },
  });
  return { tracker: storeTrackers({ ...parts, store, settings }).tracker('local'), failing };
}

test('a disk that is full for a while delays the calls, and the request is tracked to its end', async () => {
  await using home = new BenchHome();
  const { tracker, failing } = await trackerOn(home);
  const calls = [
    () => tracker.trackRequest('req1', 'agent456', null, { prompt: 'Hello.' }),
    () => tracker.updateRequestSession('req1', 'abc789'),
    () => tracker.completeRequest('req1', { reply: 'Hi.' }),
  ];
  const statuses: string[] = [];
  for (const call of calls) {
    failing.count = 2;
    statuses.push((await call()).status);
  }
  expect(statuses).toEqual(['pending', 'active', 'completed']);
  await tracker.close();
});

test('a call that still waits for a full disk ends with the tracker', async () => {
  await using home = new BenchHome();
  const { tracker, failing } = await trackerOn(home);
  await tracker.trackRequest('req1', 'agent456', null);
  failing.count = Number.POSITIVE_INFINITY;
  const ends = expect(tracker.completeRequest('req1')).rejects.toMatchObject({ code: 'storage_full' });
  await new Promise(setImmediate);
  await tracker.close();
  await ends;
});

test('a request that cannot begin because the disk stays full keeps no lock, and the next request ends it', async () => {
  await using home = new BenchHome();
  const { tracker, failing } = await trackerOn(home, 0);
  failing.count = Number.POSITIVE_INFINITY;
  await expect(tracker.trackRequest('req1', 'agent456', null)).rejects.toMatchObject({ code: 'storage_full' });
  failing.count = 0;
  expect(await tracker.trackRequest('req2', 'agent456', null)).toMatchObject({ status: 'pending' });
  expect(await tracker.getRequest('req1')).toMatchObject({ status: 'failed', lock: null });
  await tracker.close();
});
