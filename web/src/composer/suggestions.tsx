import { clsx } from 'clsx';
import { useEffect, useState } from 'react';
import { flushSync } from 'react-dom';
import { fitOf } from '../../../src/core/public/files.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useClient } from '../data/session.ts';
import { placeCaret } from './field.tsx';
import { commandAt, commandSuggestions, fileSuggestions, mentionAt, type Suggestion } from './suggest.ts';

interface Suggesting {
  readonly all: readonly Suggestion[];
  readonly active: number;
  /** The id of its element, for screen readers; null: none. */
  readonly activeId: string | null;
  onCaret(caret: number): void;
  onMeaning(meaning: 'choose' | 'next' | 'previous' | 'close'): void;
  onChoose(suggestion: Suggestion): void;
}

/** The suggestions at the caret, and the highlighted one. */
export function useSuggestions(text: string, onText: (text: string) => void): Suggesting {
  const commands = useConversation(({ announced }) => announced.commands);
  const [caret, setCaret] = useState(0);
  const [active, setActive] = useState(0);
  const [closedFor, setClosedFor] = useState<string | null>(null);
  const store = useConversationStore();
  const isNeeded = commandAt(text, caret) !== null;
  useEffect(() => {
    if (isNeeded) store.readAnnounced();
  }, [store, isNeeded]);
  const files = useFiles(closedFor === text ? null : (mentionAt(text, caret)?.typed ?? null));
  const found = [...commandSuggestions(commands, text, caret), ...fileSuggestions(files, text, caret)];
  const all = closedFor === text ? [] : found;
  const chosen = Math.min(active, all.length - 1);
  const choose = (suggestion: Suggestion) => {
    // `placeCaret` needs the text in the field.
    flushSync(() => {
      onText(suggestion.text);
      setCaret(suggestion.caret);
      setActive(0);
      setClosedFor(suggestion.isOpen ? null : suggestion.text);
    });
    placeCaret(suggestion.caret);
  };
  const onMeaning: Suggesting['onMeaning'] = (meaning) => {
    const suggestion = all[chosen];
    if (meaning === 'choose' && suggestion !== undefined) choose(suggestion);
    else if (meaning === 'close') setClosedFor(text);
    else setActive((chosen + (meaning === 'next' ? 1 : all.length - 1)) % Math.max(1, all.length));
  };
  const activeId = all.length === 0 ? null : `composer-suggestion-${chosen}`;
  return { all, active: chosen, activeId, onCaret: setCaret, onMeaning, onChoose: choose };
}

/** Files are read after this pause in typing. */
const TYPING_MS = 100;

/** Files of the conversation that match what was typed. Matching ones of the previous answer are shown until the next arrives. */
function useFiles(typed: string | null): readonly string[] {
  const tl = useClient();
  const { id } = useConversationStore();
  const [known, setKnown] = useState<readonly string[]>([]);
  useEffect(() => {
    if (typed === null) return;
    let isCurrent = true;
    const show = (paths: readonly string[]) => {
      if (isCurrent) setKnown(paths);
    };
    const timer = setTimeout(() => {
      // Without a directory there is nothing to suggest; the path can still be typed.
      tl.engine.files(id, { match: typed }).then(
        ({ paths }) => show(paths),
        () => show([]),
      );
    }, TYPING_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [tl, id, typed]);
  return typed === null ? [] : known.filter((path) => fitOf(path, typed) !== null);
}

export function Suggestions({ all, active, onChoose }: Suggesting) {
  if (all.length === 0) return null;
  return (
    <div
      id="composer-suggestions"
      role="listbox"
      aria-label="Suggestions"
      className="absolute inset-x-0 bottom-full z-30 mb-1 max-h-64 overflow-y-auto rounded-lg border border-line bg-raised p-1 text-ui shadow-xl"
    >
      {all.map((suggestion, index) => (
        <div
          key={suggestion.id}
          id={`composer-suggestion-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === active}
          ref={index === active ? intoView : null}
          // The field keeps the focus.
          onPointerDown={(event) => {
            event.preventDefault();
            onChoose(suggestion);
          }}
          className={clsx(
            'flex cursor-pointer gap-3 rounded-md px-2 py-1 pointer-coarse:min-h-11',
            index === active && 'bg-hover',
          )}
        >
          <span className="shrink-0 font-mono text-facts leading-5">{suggestion.label}</span>
          <span className="min-w-0 truncate text-muted">{suggestion.about}</span>
        </div>
      ))}
    </div>
  );
}

function intoView(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: 'nearest' });
}
