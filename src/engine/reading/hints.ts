import { setTimeout as delay } from 'node:timers/promises';
import type { Hint } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { Changes } from './changes.ts';

/** What is said about one conversation within this time is said once: a streaming answer moves it many times a second. */
const GATHER_MS = 100;
/** Of more than these, only that there are many is said: whoever listens slowly must not cost without bound. */
const MOST = 1_000;

/** Says which of the owner's conversations have news. What belongs to others is dropped here, and never seen. */
export async function* hints(
  store: Store,
  changes: Changes,
  owner: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Hint> {
  let moved = new Set<string>();
  let any = false;
  let wake = () => {};
  const stopListening = changes.onAny((ids) => {
    if (ids === null || moved.size + ids.length > MOST) any = true;
    else for (const id of ids) moved.add(id);
    wake();
  });
  const ring = () => wake();
  signal?.addEventListener('abort', ring);
  try {
    while (!signal?.aborted) {
      if (moved.size === 0 && !any) await new Promise<void>((resolve) => (wake = resolve));
      const [ids, all] = [moved, any];
      [moved, any] = [new Set(), false];
      if (all) yield { conversation: null, seq: null };
      else {
        for (const id of ids) {
          const conversation = await store.findConversation(owner, id);
          if (conversation?.id === id) yield { conversation: id, seq: conversation.lastSeq };
        }
      }
      await delay(GATHER_MS, undefined, { signal: signal ?? AbortSignal.any([]) }).catch(() => {});
    }
  } finally {
    stopListening();
    signal?.removeEventListener('abort', ring);
  }
}
