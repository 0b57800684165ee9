import { ChevronDown, ChevronUp, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useLocation, useSearchParams } from 'wouter';
import { isOpen } from '../data/conversation/model.ts';
import { useConversationStore } from '../data/conversation/use-conversation.ts';
import { useClient } from '../data/session.ts';
import { IconButton } from '../ui/button.tsx';
import { ErrorNote } from '../ui/notes.tsx';
import { type Found, findTurns, NOTHING_SOUGHT, nextOf, rangesOf, type Sought, useFinding } from './find.ts';
import type { Target } from './target.tsx';

/** A search starts after this pause in typing. */
const TYPING_MS = 150;
/** More highlights on one screen would only cost time. */
const MOST_RANGES = 2_000;

/** Opened with the words of a search, which led to turn `at`. Null: somebody types the words. */
type FindRequest = { readonly words: string; readonly at: number } | { readonly words: null };

/** Why the bar is shown: by its key, or because the address has the words of a search. A new object each time; null: it is closed. */
export function useFindRequest(target: Target) {
  const [request, setRequest] = useState<FindRequest | null>(null);
  const [path, go] = useLocation();
  const words = useSearchParams()[0].get('find');
  useEffect(() => {
    if (words && target?.kind === 'turn') setRequest({ words, at: target.n });
  }, [words, target]);
  const close = () => {
    setRequest(null);
    // Without the words in the address, the same hit can be opened again.
    if (words !== null) go(path, { replace: true });
  };
  return { request, open: () => setRequest({ words: null }), close };
}

interface FindBarProps {
  readonly request: FindRequest;
  readonly scroller: { readonly current: HTMLElement | null };
  onClose(): void;
}

/** Finds words in the whole conversation, also in turns that are not loaded. */
export function FindBar({ request, scroller, onClose }: FindBarProps) {
  const input = useRef<HTMLInputElement>(null);
  const { sought, setSought, at, setAt } = useSought(request, input);
  const { found, error } = useFound(sought);
  const turns = found?.turns ?? [];
  const [, go] = useLocation();
  useHighlights(scroller, sought, at);
  const step = (by: 1 | -1) => {
    const next = nextOf(turns, at ?? Number.MAX_SAFE_INTEGER, by);
    if (next === null) return;
    setAt(next);
    go(`/turn/${next}`, { replace: true });
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape') onClose();
    // The search goes from the end to the start.
    if (event.key === 'Enter') step(event.shiftKey ? 1 : -1);
  };
  return (
    <search className="absolute top-2 right-4 z-10 max-w-[calc(100%-2rem)] rounded-lg border border-line bg-raised p-1 text-ui shadow-lg">
      <div className="flex items-center gap-1">
        <input
          ref={input}
          type="search"
          aria-label="Find in this conversation"
          placeholder="Find in this conversation"
          value={sought.text}
          onChange={(event) => {
            setSought({ text: event.target.value, isWords: false });
            setAt(null);
          }}
          onKeyDown={onKeyDown}
          className="h-7 w-52 min-w-0 bg-transparent px-2 outline-none"
        />
        <span role="status" className="px-1 text-facts whitespace-nowrap text-muted tabular-nums">
          {error === null && countText(sought, found, at)}
        </span>
        <IconButton label="Earlier match" keys="Enter" small disabled={turns.length === 0} onClick={() => step(-1)}>
          <ChevronUp size={15} />
        </IconButton>
        <IconButton label="Later match" keys="Shift+Enter" small disabled={turns.length === 0} onClick={() => step(1)}>
          <ChevronDown size={15} />
        </IconButton>
        <IconButton label="Close" keys="Escape" small onClick={onClose}>
          <X size={15} />
        </IconButton>
      </div>
      {error !== null && <ErrorNote error={error} cli="throughline search WORDS" />}
    </search>
  );
}

/** What somebody looks for, and the turn of the current match: from the request, or as they type. */
function useSought(request: FindRequest, input: { readonly current: HTMLInputElement | null }) {
  const [sought, setSought] = useState(NOTHING_SOUGHT);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    if (request.words === null) {
      input.current?.focus();
      return input.current?.select();
    }
    // The focus stays in the search results, so that keys can move on to the next hit.
    setSought({ text: request.words, isWords: true });
    setAt(request.at);
  }, [request, input]);
  useEffect(() => useFinding.setState({ sought, at }), [sought, at]);
  useEffect(() => () => useFinding.setState({ sought: NOTHING_SOUGHT, at: null }), []);
  return { sought, setSought, at, setAt };
}

/** `found`: null if the first page has not been searched yet. */
function countText({ text }: Sought, found: Found | null, at: number | null): string {
  if (text.trim() === '') return '';
  if (found === null) return 'searching';
  const { turns, from } = found;
  // The turn of a hit may not have been searched yet.
  const place = at === null || !turns.includes(at) ? '' : `${turns.indexOf(at) + 1} of `;
  const rest = from > 1 ? ` · searching, ${from - 1} left` : '';
  return `${place}${turns.length} ${turns.length === 1 ? 'turn' : 'turns'}${rest}`;
}

function useFound(sought: Sought): { readonly found: Found | null; readonly error: unknown } {
  const { engine } = useClient();
  const { id, state: conversation } = useConversationStore();
  const [state, setState] = useState<{ found: Found | null; error: unknown }>({ found: null, error: null });
  useEffect(() => {
    setState({ found: null, error: null });
    if (sought.text.trim() === '') return;
    const stop = new AbortController();
    const search = async () => {
      const items = [...conversation.getState().turns.values()].filter(isOpen);
      const open = new Map(items.map(({ turn, parts }) => [turn.n, parts]));
      const how = { signal: stop.signal, open };
      for await (const found of findTurns(engine, id, sought, how)) setState({ found, error: null });
    };
    const timer = setTimeout(() => {
      search().catch((error) => !stop.signal.aborted && setState({ found: null, error }));
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [engine, id, sought, conversation]);
  return state;
}

/** Highlights the words without changing the elements, so that a selection stays. */
function useHighlights(scroller: FindBarProps['scroller'], sought: Sought, at: number | null): void {
  useEffect(() => {
    const root = scroller.current;
    if (root === null || sought.text.trim() === '' || !('highlights' in CSS)) return;
    let frame = 0;
    const mark = () => {
      frame = 0;
      const here = at === null ? null : root.querySelector(`[data-turn="${at}"]`);
      const [inHere, all] = [
        here === null ? [] : rangesOf(here, sought, MOST_RANGES),
        rangesOf(root, sought, MOST_RANGES),
      ];
      CSS.highlights.set('found', new Highlight(...all));
      CSS.highlights.set('found-here', new Highlight(...inHere));
    };
    const observer = new MutationObserver(() => {
      if (frame === 0) frame = requestAnimationFrame(mark);
    });
    mark();
    observer.observe(root, { childList: true, characterData: true, subtree: true });
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
      CSS.highlights.delete('found');
      CSS.highlights.delete('found-here');
    };
  }, [scroller, sought, at]);
}
