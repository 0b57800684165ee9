import { ChevronRight } from 'lucide-react';
import { useCallback, useEffect, useRef, useState } from 'react';
import type { ConversationEvent } from 'throughline/client';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useClient } from '../data/session.ts';
import { Button } from '../ui/button.tsx';
import { CliLine, CopyButton, ErrorNote, Skeleton, Verbatim } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';

const PAGE = 100;

/** Every stored event as JSON, the newest first. */
export function Raw() {
  const { id } = useConversationStore();
  const name = useConversation(({ conversation }) => conversation?.key ?? id);
  const { events, error, hasMore, more } = useEventsBackwards();
  if (events === null) return error === null ? <Skeleton lines={6} /> : <ErrorNote error={error} />;
  return (
    <div className="space-y-2 p-3">
      <CliLine
        line={`curl -N ${shellWord(`${location.origin}/v1/conversations/${encodeURIComponent(name)}/events?after=0`)} -H "Authorization: Bearer $KEY"`}
      />
      {error !== null && <ErrorNote error={error} />}
      <ol className="font-mono text-facts">
        {events.map((event) => (
          <li key={event.seq}>
            <EventRow event={event} />
          </li>
        ))}
      </ol>
      {hasMore && (
        <Button small onClick={more}>
          Earlier events
        </Button>
      )}
    </div>
  );
}

/** Events are read at most this often: an agent that streams causes many of them. */
const BETWEEN_MS = 500;

/** New events are read from the end back to the known ones, without a gap. */
function useEventsBackwards() {
  const { engine } = useClient();
  const { id, state } = useConversationStore();
  const [events, setEvents] = useState<readonly ConversationEvent[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const newest = useRef(0);
  const readPage = useCallback(
    async (before: number | 'end') => {
      const page = await engine.events(id, { before, limit: PAGE });
      setEvents((known) => joined(known ?? [], page));
      setError(null);
      return page;
    },
    [engine, id],
  );
  useEffect(() => {
    let [isCurrent, timer] = [true, 0];
    const readNewer = async () => {
      const known = newest.current;
      let page = await readPage('end');
      const last = page.at(-1)?.seq ?? 0;
      while (isCurrent && known > 0 && page[0] !== undefined && page[0].seq > known + 1) {
        page = await readPage(page[0].seq);
      }
      if (isCurrent) newest.current = last;
    };
    // One read at a time. Events that arrive meanwhile are read after it.
    const look = (afterMs: number) => {
      timer ||= window.setTimeout(async () => {
        const { lastSeq } = state.getState();
        await readNewer().catch(setError);
        timer = 0;
        if (isCurrent && lastSeq !== state.getState().lastSeq) look(BETWEEN_MS);
      }, afterMs);
    };
    look(0);
    const stop = state.subscribe((now, before) => now.lastSeq !== before.lastSeq && look(BETWEEN_MS));
    return () => {
      isCurrent = false;
      window.clearTimeout(timer);
      stop();
    };
  }, [readPage, state]);
  const oldest = events?.at(-1)?.seq ?? 1;
  return { events, error, hasMore: oldest > 1, more: () => void readPage(oldest).catch(setError) };
}

/** Newest first, without duplicates. */
function joined(known: readonly ConversationEvent[], page: readonly ConversationEvent[]): ConversationEvent[] {
  const bySeq = new Map([...known, ...page].map((event) => [event.seq, event]));
  return [...bySeq.values()].toSorted((a, b) => b.seq - a.seq);
}

function EventRow({ event }: { event: ConversationEvent }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-2 rounded-sm px-1 py-0.5 text-left hover:bg-hover pointer-coarse:min-h-11"
      >
        <ChevronRight size={12} className={isOpen ? 'rotate-90' : ''} aria-hidden />
        <span className="w-10 text-right text-faint tabular-nums">{event.seq}</span>
        <span className="min-w-0 flex-1 truncate">{event.kind}</span>
        <span className="text-faint tabular-nums">{new Date(event.at).toLocaleTimeString()}</span>
      </button>
      {isOpen && <Json value={event} />}
    </>
  );
}

function Json({ value }: { value: unknown }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <div className="relative my-1">
      <Verbatim label="The event as JSON" className="max-h-80 pr-10">
        {text}
      </Verbatim>
      <div className="absolute top-0 right-0">
        <CopyButton text={text} label="Copy as JSON" />
      </div>
    </div>
  );
}
