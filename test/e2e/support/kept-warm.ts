import type { Store } from '../../../src/ports/store.ts';

/** After the last write of a turn, a worker needs fewer iterations of the event loop than this to keep the session for the next turn. */
const ITERATIONS = 10;

/** Resolves when a session is kept warm: the next turn has ended, or the worker has found no next turn. */
export async function keptWarm(store: Store): Promise<void> {
  const { commit, nextTurn } = store;
  const done = Promise.withResolvers<void>();
  store.commit = async (fence, counter, writes) => {
    const committed = await commit.call(store, fence, counter, writes);
    if (writes.some(({ write }) => write === 'end')) done.resolve();
    return committed;
  };
  store.nextTurn = async (...args) => {
    const next = await nextTurn.apply(store, args);
    if (next === null) done.resolve();
    return next;
  };
  await done.promise;
  Object.assign(store, { commit, nextTurn });
  for (let i = 0; i < ITERATIONS; i += 1) await new Promise(setImmediate);
}
