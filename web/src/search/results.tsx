import type { SearchHit } from 'throughline/client';
import { Link } from 'wouter';
import { ErrorNote, Skeleton } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { nameOf } from '../ui/state.tsx';
import { marked, pathOf, type Search } from './search.ts';

/** The turns with all the words, best first. The last result stays until the next is here. */
export function SearchResults({ search, onChosen }: { search: Search; onChosen(): void }) {
  const { found, isBusy } = search;
  if (found === null) return <div className="flex-1">{isBusy && <Skeleton lines={6} />}</div>;
  const { hits, words, error } = found;
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-2" aria-busy={isBusy}>
      <p role="status" className="px-2 pb-1 text-xs text-muted">
        {hits.length === 0 ? 'Nothing has all these words.' : hits.length === 1 ? 'One turn' : `${hits.length} turns`}
      </p>
      {error !== null && <ErrorNote error={error} cli={`throughline search ${shellWord(words)}`} />}
      <ul aria-label="Search results">
        {hits.map((hit) => (
          <li key={`${hit.conversationId} ${hit.n}`}>
            <Hit hit={hit} words={words} onChosen={onChosen} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Hit({ hit, words, onChosen }: { hit: SearchHit; words: string; onChosen(): void }) {
  return (
    <Link
      href={pathOf(hit, words)}
      data-hit
      onClick={onChosen}
      onKeyDown={(event: React.KeyboardEvent<HTMLElement>) => {
        const row = event.currentTarget.closest('li');
        const next =
          event.key === 'ArrowDown'
            ? row?.nextElementSibling
            : event.key === 'ArrowUp'
              ? row?.previousElementSibling
              : null;
        if (next === null || next === undefined) return;
        event.preventDefault();
        next.querySelector('a')?.focus();
      }}
      className="block rounded-md px-2 py-1.5 -outline-offset-2 hover:bg-hover"
    >
      <span className="flex items-baseline gap-2 text-[13px]">
        <span className="min-w-0 flex-1 truncate font-medium">{nameOf(hit)}</span>
        <span className="shrink-0 text-xs text-faint tabular-nums">turn {hit.n}</span>
      </span>
      <span className="line-clamp-3 text-xs break-words text-muted">
        {marked(hit.snippet, words).map(({ text, isHit }, index) =>
          isHit ? (
            <mark key={String(index)} className="rounded-sm bg-accent-soft text-ink">
              {text}
            </mark>
          ) : (
            text
          ),
        )}
      </span>
    </Link>
  );
}
