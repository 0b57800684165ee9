import { Search as SearchIcon, X } from 'lucide-react';
import { useRef } from 'react';
import { useActions } from '../shell/actions.ts';
import { IconButton } from '../ui/button.tsx';
import { Keys } from '../ui/keys.tsx';
import type { Search } from './search.ts';

/** Words to look for in titles and in everything that was said. `/` goes there, Escape leaves. */
export function SearchField({ search, offersKey }: { search: Search; offersKey: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  const { words, setWords } = search;
  const focus = () => field.current?.select();
  const go = { id: 'search', title: 'Search all conversations', group: 'Conversations', keys: '/', run: focus };
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
        onChange={(event) => setWords(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            event.stopPropagation();
            setWords('');
            field.current?.blur();
          }
          if (event.key !== 'ArrowDown' || event.nativeEvent.isComposing) return;
          event.preventDefault();
          event.currentTarget.closest('aside, [role=dialog]')?.querySelector<HTMLElement>('[data-hit]')?.focus();
        }}
        className="h-8 w-full rounded-md border border-line bg-surface pr-8 pl-7 text-sm placeholder:text-faint pointer-coarse:h-11"
      />
      <span className="absolute top-1/2 right-1 -translate-y-1/2">
        {words !== '' ? (
          <IconButton label="End the search" small onClick={() => setWords('')}>
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
    </search>
  );
}
