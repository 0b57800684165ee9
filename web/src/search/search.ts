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

interface Found {
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

/** A snippet in pieces, where those with one of the words are marked. */
export function marked(snippet: string, words: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const [from, to] of placesOfWords(snippet, words)) {
    if (from > end) pieces.push({ text: snippet.slice(end, from), isHit: false });
    pieces.push({ text: snippet.slice(from, to), isHit: true });
    end = to;
  }
  if (end < snippet.length) pieces.push({ text: snippet.slice(end), isHit: false });
  return pieces;
}

/** Where a text has one of the words, from and to, rising. Case and accents do not count, as in the search. */
export function placesOfWords(text: string, words: string): (readonly [number, number])[] {
  const patterns = patternsOf(words);
  // Most texts have none of them, and folding letter by letter is slow.
  if (patterns.length === 0 || !anyOf(patterns).test(fold(text))) return [];
  // It keeps the positions.
  const starts = new Map<number, number>();
  let [folded, at] = ['', 0];
  for (const character of text) {
    starts.set(folded.length, at);
    folded += fold(character).slice(0, character.length) || character;
    at += character.length;
  }
  starts.set(folded.length, at);
  return [...folded.matchAll(anyOf(patterns))].flatMap(({ 0: hit, index }) => {
    const [from, to] = [starts.get(index), starts.get(index + hit.length)];
    return from === undefined || to === undefined ? [] : [[from, to] as const];
  });
}

/** Whether a text has all the words, as the search counts it. */
export function hasWords(text: string, words: string): boolean {
  const [patterns, folded] = [patternsOf(words), fold(text)];
  return patterns.length > 0 && patterns.every((pattern) => anyOf([pattern]).test(folded));
}

/** One for each word: the last one may be the beginning of a word, as in the search. */
function patternsOf(words: string): string[] {
  const wanted = searchable(words)
    .split(' ')
    .map((word) => fold(word).replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''))
    .filter((word) => word !== '');
  return wanted.map((word, index) => {
    const isBegun = index === wanted.length - 1 && word.length > 1;
    return word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') + (isBegun ? '[\\p{L}\\p{N}]*' : '');
  });
}

/** Whole words. */
function anyOf(patterns: readonly string[]): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${patterns.join('|')})(?![\\p{L}\\p{N}])`, 'gu');
}

function fold(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}
