import type { Store } from '../../../src/ports/store.ts';

/** Resolves when the session is kept for the next turn: just before, the worker asks whether a turn of another waits. */
export async function keptWarm(store: Store): Promise<void> {
  const { summary } = store;
  const asked = Promise.withResolvers<void>();
  store.summary = async (...args) => {
    const found = await summary.apply(store, args);
    asked.resolve();
    return found;
  };
  await asked.promise;
  store.summary = summary;
  await new Promise(setImmediate);
}
