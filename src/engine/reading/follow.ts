import { sizeOf } from '../../core/input/size.ts';
import { type PublicEvent, toPublicEvent } from '../../core/public/event.ts';
import type { Store } from '../../ports/store.ts';
import type { Changes } from './changes.ts';

/** Small, because a page stays in memory until its reader has taken it, and there may be many readers. */
const PAGE = { limit: 200, bytes: 256 * 1024 } as const;

export interface Followed {
  readonly owner: string;
  /** The conversation. */
  readonly id: string;
  /** The number of the last event that the reader has. */
  readonly after: number;
  readonly signal: AbortSignal | undefined;
  /** Called when a read has found nothing new. */
  readonly onQuiet: () => Promise<void>;
}

/**
 * Yields the events of a conversation after a number, and waits for more. A slow reader costs one page of memory: the next
 * page is read only when the last one was taken.
 */
export async function* follow(
  store: Store,
  changes: Changes,
  { owner, id, after, signal, onQuiet }: Followed,
): AsyncGenerator<PublicEvent> {
  const watch = changes.watch(id);
  const wake = () => watch.notify();
  signal?.addEventListener('abort', wake);
  try {
    let last = after;
    while (!signal?.aborted) {
      const { events, isLast } = await changes.sharedRead(id, last, () => readPage(store, owner, id, last));
      for (const event of events) {
        if (signal?.aborted) return;
        yield event;
        last = event.seq;
      }
      if (isLast && events.length === 0) await onQuiet();
      if (isLast) await watch.next();
    }
  } finally {
    signal?.removeEventListener('abort', wake);
    watch.close();
  }
}

/** Readers of the same page get the same event objects, so that a server encodes each event once. */
async function readPage(store: Store, owner: string, id: string, after: number) {
  const stored = await store.events(owner, id, { after, ...PAGE });
  // A page that is neither full nor large contains everything there was.
  const isLast = stored.length < PAGE.limit && sizeOf(stored) < PAGE.bytes;
  return { events: stored.map(toPublicEvent), isLast };
}
