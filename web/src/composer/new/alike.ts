import type { SearchHit } from 'throughline/client';

/** Shorter words are in too many conversations. */
const SHORTEST = 5;
const MOST_WORDS = 2;

/** The words that tell most about a prompt: its longest ones, in their order. Empty: too little was typed. */
export function alikeWords(text: string): string {
  const words = [...new Set(text.slice(0, 2_000).match(/[\p{L}\p{N}]+/gu) ?? [])].filter(
    (word) => word.length >= SHORTEST,
  );
  if (words.length < MOST_WORDS) return '';
  const longest = new Set(words.toSorted((a, b) => b.length - a.length).slice(0, MOST_WORDS));
  return words.filter((word) => longest.has(word)).join(' ');
}

/** The first hit of each conversation. */
export function firstOfEach(hits: readonly SearchHit[]): SearchHit[] {
  return hits.filter((hit, at) => hits.findIndex((one) => one.conversationId === hit.conversationId) === at);
}
