import { useEffect, useState } from 'react';
import type { SearchHit } from 'throughline/client';
import { useClient } from '../data/session.ts';

export interface Search {
  /** As they were typed. */
  readonly words: string;
  setWords(words: string): void;
  /** What the last finished search found; null: none has finished. */
  readonly found: Found | null;
  /** A newer search is on its way. */
  readonly isBusy: boolean;
}

export interface Found {
  readonly words: string;
  readonly hits: readonly SearchHit[];
  readonly error: unknown;
}

/** How long somebody must have stopped typing. */
const QUIET_MS = 150;
const MOST_HITS = 50;

/** Searches while somebody types. An answer that is late is left out. */
export function useSearch(): Search {
  const tl = useClient();
  const [words, setWords] = useState('');
  const [found, setFound] = useState<Found | null>(null);
  const asked = searchable(words);
  useEffect(() => {
    if (asked === '') return setFound(null);
    let isCurrent = true;
    const timer = window.setTimeout(async () => {
      const answer = await tl.search(asked, { limit: MOST_HITS }).then(
        (hits) => ({ words: asked, hits, error: null }),
        (error: unknown) => ({ words: asked, hits: [], error }),
      );
      if (isCurrent) setFound(answer);
    }, QUIET_MS);
    return () => {
      isCurrent = false;
      window.clearTimeout(timer);
    };
  }, [tl, asked]);
  return { words, setWords, found, isBusy: asked !== '' && found?.words !== asked };
}

/** Nothing to look for without a letter or a digit: the server refuses it. */
export function searchable(words: string): string {
  const plain = words.trim().replace(/\s+/g, ' ');
  return /[\p{L}\p{N}]/u.test(plain) ? plain : '';
}

/** Where a hit leads: its turn, with the words to highlight there; a title leads to the end of its conversation. */
export function pathOf({ conversationId, n }: Pick<SearchHit, 'conversationId' | 'n'>, words: string): string {
  if (n === null) return `/c/${conversationId}`;
  return `/c/${conversationId}/turn/${n}?find=${encodeURIComponent(words)}`;
}

/** How many were found, in words. */
export function countOf(hits: readonly SearchHit[]): string {
  const titles = hits.filter(({ n }) => n === null).length;
  const turns = hits.length - titles;
  if (hits.length === 0) return 'Nothing has all these words.';
  const parts = [
    titles > 0 && `${titles} ${titles === 1 ? 'conversation' : 'conversations'} by title`,
    turns > 0 && `${turns} ${turns === 1 ? 'turn' : 'turns'}`,
  ];
  return parts.filter(Boolean).join(', ');
}

export interface Piece {
  readonly text: string;
  readonly isHit: boolean;
}

/** A snippet in pieces, where those with one of the words are marked. Case and accents do not count, as in the search. */
export function marked(snippet: string, words: string): Piece[] {
  const wanted = searchable(words)
    .split(' ')
    .map((word) => fold(word).replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''))
    .map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .filter((word) => word !== '');
  if (wanted.length === 0) return [{ text: snippet, isHit: false }];
  // Folding letter by letter keeps the positions.
  const characters = [...snippet];
  const folded = characters.map((character) => fold(character).slice(0, character.length) || character);
  const text = folded.join('');
  const starts = new Map<number, number>();
  let at = 0;
  for (const [index, character] of folded.entries()) {
    starts.set(at, index);
    at += character.length;
  }
  starts.set(at, characters.length);
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: hit, index } of text.matchAll(asSearched(wanted))) {
    const [from, to] = [starts.get(index), starts.get(index + hit.length)];
    if (from === undefined || to === undefined) continue;
    if (from > end) pieces.push({ text: characters.slice(end, from).join(''), isHit: false });
    pieces.push({ text: characters.slice(from, to).join(''), isHit: true });
    end = to;
  }
  if (end < characters.length) pieces.push({ text: characters.slice(end).join(''), isHit: false });
  return pieces;
}

/** Whole words; the last one may be the beginning of a word, as in the search. */
function asSearched(words: readonly string[]): RegExp {
  const [last = '', rest] = [words.at(-1), words.slice(0, -1)];
  const begun = last.length > 1 ? '[\\p{L}\\p{N}]*' : '';
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${[...rest, last + begun].join('|')})(?![\\p{L}\\p{N}])`, 'gu');
}

function fold(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}
