import { setTimeout as delay } from 'node:timers/promises';
import type { Hint } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { Changes } from './changes.ts';

/** Several changes of a conversation within this time are one hint: a streaming answer changes it many times a second. */
const GATHER_MS = 100;
/** If more conversations have changed, one hint says that any may have, so that a slow reader needs little memory. */
const MOST = 1_000;

/** Yields which of the owner's conversations have changed. Those of other owners are left out. */
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
  const onAbort = () => wake();
  signal?.addEventListener('abort', onAbort);
  const poll = setInterval(() => wake(), changes.pollMs).unref();
  try {
    while (!signal?.aborted) {
      if (moved.size === 0 && !any) await new Promise<void>((resolve) => (wake = resolve));
      if (moved.size === 0 && !any) {
        // No notification comes from a data file that is gone.
        if (!signal?.aborted) await store.check();
        continue;
      }
      const [ids, all] = [moved, any];
      [moved, any] = [new Set(), false];
      if (all) yield { conversationId: null, seq: null };
      else {
        for (const id of ids) {
          const conversation = await store.findConversation(owner, id);
          if (conversation?.id === id) yield { conversationId: id, seq: conversation.lastSeq };
        }
      }
      await delay(GATHER_MS, undefined, { signal: signal ?? AbortSignal.any([]) }).catch(() => {});
    }
  } finally {
    stopListening();
    clearInterval(poll);
    signal?.removeEventListener('abort', onAbort);
  }
}
