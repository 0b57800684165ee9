import { Search as SearchIcon, X } from 'lucide-react';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { IconButton } from '../ui/button.tsx';
import type { Search } from './search.ts';

/** The search over titles and turns. It opens with the focus. Enter opens the first hit, Escape ends it. */
export function SearchField({ search, onEnd }: { search: Search; onEnd(): void }) {
  const field = useRef<HTMLInputElement>(null);
  const { words, setWords, isBusy } = search;
  const [isWanted, setWanted] = useState(false);
  // Before the next key arrives.
  useLayoutEffect(() => field.current?.focus(), []);
  // Enter may be pressed before the answer has arrived.
  useEffect(() => {
    if (!isWanted || isBusy) return;
    setWanted(false);
    firstHit(field.current)?.click();
  }, [isWanted, isBusy]);
  return (
    <search className="relative mx-2 mb-2 block shrink-0 max-md:mt-2">
      <SearchIcon
        size={14}
        aria-hidden
        className="pointer-events-none absolute top-1/2 left-2 -translate-y-1/2 text-faint"
      />
      <input
        ref={field}
        type="text"
        inputMode="search"
        data-search
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
            onEnd();
          }
          if (event.nativeEvent.isComposing) return;
          if (event.key === 'Enter') setWanted(true);
          if (event.key !== 'ArrowDown') return;
          event.preventDefault();
          firstHit(field.current)?.focus();
        }}
        className="min-h-8 w-full rounded-md border border-control bg-raised pr-8 pl-7 placeholder:text-faint pointer-coarse:min-h-11"
      />
      <span className="absolute top-1/2 right-0.5 -translate-y-1/2">
        <IconButton label="End the search" keys="Escape" small onClick={onEnd}>
          <X size={14} />
        </IconButton>
      </span>
    </search>
  );
}

function firstHit(field: HTMLElement | null): HTMLElement | null | undefined {
  return field?.closest('aside, main')?.querySelector<HTMLElement>('[data-hit]');
}
