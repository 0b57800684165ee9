import { Search as SearchIcon, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useActions } from '../shell/actions.ts';
import { IconButton } from '../ui/button.tsx';
import { Keys } from '../ui/keys.tsx';
import type { Search } from './search.ts';

/** The search over titles and turns. `/` focuses it, Enter opens the first hit, Escape leaves it. */
export function SearchField({ search, offersKey }: { search: Search; offersKey: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  const { words, setWords, isBusy } = search;
  const [isWanted, setWanted] = useState(false);
  const focus = () => field.current?.select();
  const go = { id: 'search', title: 'Search all conversations', group: 'Conversations', keys: '/', run: focus };
  // Enter may be pressed before the answer has arrived.
  useEffect(() => {
    if (!isWanted || isBusy) return;
    setWanted(false);
    firstHit(field.current)?.click();
  }, [isWanted, isBusy]);
  useActions(offersKey ? [{ ...go, cli: 'throughline search WORDS' }] : []);
  return (
    <search className="relative block min-w-0 flex-1">
      <SearchIcon
        size={14}
        aria-hidden
        className="pointer-events-none absolute top-1/2 left-2 -translate-y-1/2 text-faint"
      />
      <input
        ref={field}
        type="text"
        inputMode="search"
        aria-label="Search all conversations"
        placeholder="Search everything"
        value={words}
        onChange={(event) => {
          setWanted(false);
          setWords(event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            event.stopPropagation();
            setWords('');
            field.current?.blur();
          }
          if (event.nativeEvent.isComposing) return;
          if (event.key === 'Enter') setWanted(true);
          if (event.key !== 'ArrowDown') return;
          event.preventDefault();
          firstHit(field.current)?.focus();
        }}
        className="h-8 w-full rounded-md border border-line bg-raised pr-8 pl-7 text-ui placeholder:text-faint pointer-coarse:h-11"
      />
      <FieldEnd words={words} offersKey={offersKey} onEnd={() => setWords('')} />
    </search>
  );
}

/** Clears the search; while it is empty, shows its key. */
function FieldEnd({ words, offersKey, onEnd }: { words: string; offersKey: boolean; onEnd(): void }) {
  return (
    <span className="absolute top-1/2 right-1 -translate-y-1/2">
      {words !== '' ? (
        <IconButton label="Clear the search" small onClick={onEnd}>
          <X size={14} />
        </IconButton>
      ) : (
        offersKey && (
          <span className="mr-1 pointer-coarse:hidden">
            <Keys keys="/" />
          </span>
        )
      )}
    </span>
  );
}

function firstHit(field: HTMLElement | null): HTMLElement | null | undefined {
  return field?.closest('aside, [role=dialog]')?.querySelector<HTMLElement>('[data-hit]');
}
