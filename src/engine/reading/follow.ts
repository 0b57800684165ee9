import type { ConversationEvent } from '../../core/event.ts';
import { type PublicEvent, toPublicEvent } from '../../core/public/event.ts';
import { sizeOf } from '../../core/size.ts';
import type { Store } from '../../ports/store.ts';
import type { Changes } from './changes.ts';

/** Small: a page is kept in memory until its reader has taken it, and there may be many readers. */
const PAGE = { limit: 200, bytes: 256 * 1024 } as const;

export interface Followed {
  readonly owner: string;
  /** The conversation. */
  readonly id: string;
  /** The number of the last event that the reader has. */
  readonly after: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Yields the events of a conversation after a number, and waits for more. A slow reader costs one page of memory: the next
 * page is read only when the last one was taken.
 */
export async function* follow(
  store: Store,
  changes: Changes,
  { owner, id, after, signal }: Followed,
): AsyncGenerator<PublicEvent> {
  const watch = changes.watch(id);
  const wake = () => watch.notify();
  signal?.addEventListener('abort', wake);
  try {
    let last = after;
    while (!signal?.aborted) {
      const range = { after: last, ...PAGE };
      const events = await changes.together(id, last, () => store.events(owner, id, range));
      for (const event of events) {
        if (signal?.aborted) return;
        yield toPublicEvent(event);
        last = event.seq;
      }
      if (isLastPage(events)) await watch.next();
    }
  } finally {
    signal?.removeEventListener('abort', wake);
    watch.close();
  }
}

/** A page that is neither full nor large has everything there was. */
function isLastPage(events: readonly ConversationEvent[]): boolean {
  return events.length < PAGE.limit && sizeOf(events) < PAGE.bytes;
}
