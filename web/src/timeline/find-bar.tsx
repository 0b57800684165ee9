import { ChevronDown, ChevronUp, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { isOpen } from '../data/conversation/model.ts';
import { useConversationStore } from '../data/conversation/use-conversation.ts';
import { useClient } from '../data/session.ts';
import { IconButton } from '../ui/button.tsx';
import { ErrorNote } from '../ui/notes.tsx';
import { type Found, findTurns, nextOf, rangesOf, useFinding } from './find.ts';

/** Somebody types: the search waits for the end of the word. */
const TYPING_MS = 150;
/** More places on one screen are not told apart anyway. */
const MOST_RANGES = 2_000;

interface FindBarProps {
  readonly scroller: { readonly current: HTMLElement | null };
  onClose(): void;
}

/** Finds words in the whole conversation, also where it is not loaded. */
export function FindBar({ scroller, onClose }: FindBarProps) {
  const [words, setWords] = useState('');
  const { found, error } = useFound(words);
  const [at, setAt] = useState<number | null>(null);
  const [, go] = useLocation();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  useEffect(() => useFinding.setState({ words, at }), [words, at]);
  useEffect(() => () => useFinding.setState({ words: '', at: null }), []);
  useHighlights(scroller, words, at);
  const step = (by: 1 | -1) => {
    const next = nextOf(found.turns, at ?? Number.MAX_SAFE_INTEGER, by);
    if (next === null) return;
    setAt(next);
    go(`/turn/${next}`, { replace: true });
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape') onClose();
    // The last thing that was said is looked at first.
    if (event.key === 'Enter') step(event.shiftKey ? 1 : -1);
  };
  return (
    <search className="absolute top-2 right-4 z-10 max-w-[calc(100%-2rem)] rounded-lg border border-line bg-raised p-1 text-sm shadow-lg">
      <div className="flex items-center gap-1">
        <input
          ref={input}
          type="search"
          aria-label="Find in this conversation"
          placeholder="Find in this conversation"
          value={words}
          onChange={(event) => {
            setWords(event.target.value);
            setAt(null);
          }}
          onKeyDown={onKeyDown}
          className="h-7 w-52 min-w-0 bg-transparent px-2 outline-none"
        />
        <span role="status" className="px-1 text-xs whitespace-nowrap text-muted tabular-nums">
          {countText(words, found, at)}
        </span>
        <IconButton label="Earlier" keys="Enter" small disabled={found.turns.length === 0} onClick={() => step(-1)}>
          <ChevronUp size={15} />
        </IconButton>
        <IconButton label="Later" keys="Shift+Enter" small disabled={found.turns.length === 0} onClick={() => step(1)}>
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

const NOTHING: Found = { turns: [], from: 1 };

function countText(words: string, { turns, from }: Found, at: number | null): string {
  if (words.trim() === '') return '';
  const place = at === null ? '' : `${turns.indexOf(at) + 1} of `;
  const rest = from > 1 ? ` · searching, ${from - 1} left` : '';
  return `${place}${turns.length} ${turns.length === 1 ? 'turn' : 'turns'}${rest}`;
}

function useFound(words: string): { readonly found: Found; readonly error: unknown } {
  const { engine } = useClient();
  const { id, state: conversation } = useConversationStore();
  const [state, setState] = useState<{ found: Found; error: unknown }>({ found: NOTHING, error: null });
  useEffect(() => {
    setState({ found: NOTHING, error: null });
    if (words.trim() === '') return;
    const stop = new AbortController();
    const search = async () => {
      const items = [...conversation.getState().turns.values()].filter(isOpen);
      const open = new Map(items.map(({ turn, parts }) => [turn.n, parts]));
      const how = { signal: stop.signal, open };
      for await (const found of findTurns(engine, id, words, how)) setState({ found, error: null });
    };
    const timer = setTimeout(() => {
      search().catch((error) => !stop.signal.aborted && setState({ found: NOTHING, error }));
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [engine, id, words, conversation]);
  return state;
}

/** Marks the words wherever they are shown, without touching what is shown: a selection stays. */
function useHighlights(scroller: FindBarProps['scroller'], words: string, at: number | null): void {
  useEffect(() => {
    const root = scroller.current;
    if (root === null || words.trim() === '' || !('highlights' in CSS)) return;
    let frame = 0;
    const mark = () => {
      frame = 0;
      const here = at === null ? null : root.querySelector(`[data-turn="${at}"]`);
      const [inHere, all] = [
        here === null ? [] : rangesOf(here, words, MOST_RANGES),
        rangesOf(root, words, MOST_RANGES),
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
  }, [scroller, words, at]);
}
