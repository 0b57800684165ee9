import type { Store } from '../../../src/ports/store.ts';

/** More turns of the event loop than a worker needs until the session waits for the next turn. */
const TURNS = 10;

/** Resolves when the next turn that runs has ended, or the worker has looked for one in vain, and its session is kept for the next. */
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
  for (let i = 0; i < TURNS; i += 1) await new Promise(setImmediate);
}
