import { useEffect, useState } from 'react';
import type { SearchHit } from 'throughline/client';
import { Link } from 'wouter';
import { useClient } from '../../data/session.ts';
import { marked, pathOf } from '../../search/search.ts';
import { nameOf } from '../../ui/state.tsx';
import { alikeWords, firstOfEach } from './alike.ts';

/** A search starts after this pause in typing. */
const QUIET_MS = 400;
const MOST_HITS = 12;
const MOST_SHOWN = 3;

/** Conversations about what is being typed: one of them may be the better place for it. */
export function Alike({ text }: { text: string }) {
  const words = alikeWords(text);
  const hits = useAlike(words);
  if (hits.length === 0) return null;
  return (
    <section aria-label="Conversations alike" className="mt-5.5">
      <h2 className="text-facts font-semibold text-faint">Or go on with one of these</h2>
      <ul className="divide-y divide-line">
        {hits.map((hit) => (
          <li key={hit.conversationId}>
            <Link href={pathOf(hit, words)} className="block rounded-sm py-2 text-ui hover:bg-hover">
              <b className="font-semibold wrap-anywhere">{nameOf(hit)}</b>
              <span className="block text-muted wrap-anywhere">
                {hit.n !== null && `${hit.n}: `}
                {hit.n !== null &&
                  marked(hit.snippet, words).map(({ text, isHit }, index) =>
                    isHit ? (
                      <mark key={String(index)} className="rounded-sm bg-look-fill/35 text-ink">
                        {text}
                      </mark>
                    ) : (
                      text
                    ),
                  )}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function useAlike(words: string): readonly SearchHit[] {
  const tl = useClient();
  const [found, setFound] = useState<readonly SearchHit[]>([]);
  useEffect(() => {
    if (words === '') return setFound([]);
    let isCurrent = true;
    const timer = window.setTimeout(() => {
      tl.search(words, { limit: MOST_HITS }).then(
        (hits) => isCurrent && setFound(firstOfEach(hits).slice(0, MOST_SHOWN)),
        () => {}, // it is only an offer
      );
    }, QUIET_MS);
    return () => {
      isCurrent = false;
      window.clearTimeout(timer);
    };
  }, [tl, words]);
  return found;
}
