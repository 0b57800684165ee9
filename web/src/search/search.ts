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

/** A search starts after this pause in typing. */
const QUIET_MS = 150;
const MOST_HITS = 50;

/** Searches while somebody types. Outdated answers are dropped. */
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

/** The words with single spaces; empty without a letter or a digit, which the server refuses. */
export function searchable(words: string): string {
  const plain = words.trim().replace(/\s+/g, ' ');
  return /[\p{L}\p{N}]/u.test(plain) ? plain : '';
}

/** The address of a hit: its turn, with the words to highlight there. For a title: its conversation. */
export function pathOf({ conversationId, n }: Pick<SearchHit, 'conversationId' | 'n'>, words: string): string {
  if (n === null) return `/c/${conversationId}`;
  return `/c/${conversationId}/turn/${n}?find=${encodeURIComponent(words)}`;
}

/** How many were found, in words. */
export function countOf(hits: readonly SearchHit[]): string {
  const titles = hits.filter(({ n }) => n === null).length;
  const turns = hits.length - titles;
  if (hits.length === 0) return 'No title or turn contains all these words.';
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

/** A snippet in pieces; those that are one of the words are marked. */
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

/** Where a text contains one of the words, from and to, in ascending order. As in the search, case and accents do not count. */
export function placesOfWords(text: string, words: string): (readonly [number, number])[] {
  const patterns = patternsOf(words);
  // Most texts contain none of them, and folding letter by letter, which keeps the positions, is slow.
  if (patterns.length === 0 || !anyOf(patterns).test(fold(text))) return [];
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

/** Whether a text contains all the words, by the rules of the search. */
export function hasWords(text: string, words: string): boolean {
  const [patterns, folded] = [patternsOf(words), fold(text)];
  return patterns.length > 0 && patterns.every((pattern) => anyOf([pattern]).test(folded));
}

/** One pattern for each word. As in the search, the last word may be incomplete. */
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

/** Matches whole words only. */
function anyOf(patterns: readonly string[]): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${patterns.join('|')})(?![\\p{L}\\p{N}])`, 'gu');
}

/** Without case and accents. */
export function fold(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
}
