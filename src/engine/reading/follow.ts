import type { ConversationEvent } from '../../core/event.ts';
import { sizeOf } from '../../core/size.ts';
import type { Store } from '../../ports/store.ts';
import type { Changes } from './changes.ts';

/** A page is kept for as long as its reader takes to take it, and readers are many: it is a small one. */
const PAGE = { limit: 200, bytes: 256 * 1024 } as const;

/**
 * Reads the table from a number on, and waits for more. A slow reader costs one page of memory: the next one is read only
 * when the last one was taken.
 */
export async function* follow(
  store: Store,
  changes: Changes,
  owner: string,
  find: () => Promise<{ id: string; after: number }>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ConversationEvent> {
  const { id, after } = await find();
  const watch = changes.watch(id);
  const ring = () => watch.ring();
  signal?.addEventListener('abort', ring);
  try {
    let last = after;
    while (!signal?.aborted) {
      const from = { after: last, ...PAGE };
      const events = await changes.together(id, last, () => store.events(owner, id, from));
      for (const event of events) {
        if (signal?.aborted) return;
        yield event;
        last = event.seq;
      }
      if (hadAll(events)) await watch.next();
    }
  } finally {
    signal?.removeEventListener('abort', ring);
    watch.close();
  }
}

/** A page that is neither long nor large has whatever there was. */
function hadAll(events: readonly ConversationEvent[]): boolean {
  return events.length < PAGE.limit && sizeOf(events) < PAGE.bytes;
}
