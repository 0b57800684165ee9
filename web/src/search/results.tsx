import type { SearchHit } from 'throughline/client';
import { Link } from 'wouter';
import { useList } from '../data/list.ts';
import { projectOf } from '../rail/groups.ts';
import { ErrorNote, Skeleton } from '../ui/notes.tsx';
import { shellWord } from '../ui/shell-word.ts';
import { nameOf, StateMark } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { countOf, marked, pathOf, type Search } from './search.ts';

/** Conversations by title, then turns, best first. The previous result stays until the next one has arrived. */
export function SearchResults({ search }: { search: Search }) {
  const { found, isBusy } = search;
  if (found === null) return <div className="flex-1">{isBusy && <Skeleton lines={6} />}</div>;
  const { hits, words, error } = found;
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-2" aria-busy={isBusy}>
      <p role="status" className="px-2 pb-1 text-facts text-muted">
        {countOf(hits)}
      </p>
      {error !== null && <ErrorNote error={error} cli={`throughline search ${shellWord(words)}`} />}
      <ul aria-label="Search results">
        {hits.map((hit) => (
          <li key={`${hit.conversationId} ${hit.n}`}>
            <Hit hit={hit} words={words} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Hit({ hit, words }: { hit: SearchHit; words: string }) {
  return (
    <Link
      href={pathOf(hit, words)}
      data-hit
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
      className="block rounded-md px-2 py-1.5 -outline-offset-2 hover:bg-hover pointer-coarse:py-2.5"
    >
      <span className="flex items-baseline gap-2 text-ui">
        <span className="min-w-0 flex-1 truncate font-medium">
          <Marked text={nameOf(hit)} words={words} />
        </span>
        <span className="shrink-0 text-facts text-faint tabular-nums">
          {hit.n === null ? 'title' : `turn ${hit.n}`}
        </span>
      </span>
      {hit.n === null ? (
        <Standing id={hit.conversationId} />
      ) : (
        <span className="line-clamp-3 text-facts break-words text-muted">
          <Marked text={hit.snippet} words={words} />
        </span>
      )}
    </Link>
  );
}

function Marked({ text, words }: { text: string; words: string }) {
  return marked(text, words).map((piece, index) =>
    piece.isHit ? (
      <mark key={String(index)} className="rounded-sm bg-look-fill/35 text-ink">
        {piece.text}
      </mark>
    ) : (
      piece.text
    ),
  );
}

/** The state of the conversation, if the list has loaded it. */
function Standing({ id }: { id: string }) {
  const row = useList((list) => list.known.get(id));
  if (row === undefined) return null;
  return (
    <span className="flex items-center gap-2 text-facts text-faint">
      <StateMark of={row} />
      <span className="min-w-0 flex-1 truncate">{projectOf(row)?.name ?? ''}</span>
      <Ago at={row.updatedAt} className="shrink-0 tabular-nums" />
    </span>
  );
}
