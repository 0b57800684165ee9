import { ThroughlineError } from '../../core/errors.ts';
import { promptText } from '../../core/turn/content.ts';
import { replyText, type TurnRecord } from '../../core/turn/record.ts';
import type { SearchHit } from '../../ports/store/history.ts';

/** The shortest beginning of a word that is searched for. One letter would find nearly every turn. */
const LEAST_PREFIX = 2;

export interface SearchedWords {
  readonly words: readonly string[];
  /** The last one may be the beginning of a word: somebody may still be typing it. */
  readonly isBegun: boolean;
}

/** The words of a query. Throws `invalid` when it has none. */
export function searchedWords(query: string): SearchedWords {
  const words = query
    .replaceAll('\u0000', ' ')
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word));
  if (words.length === 0) throw new ThroughlineError('invalid', 'The search has no words.');
  const isBegun = (words.at(-1)?.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= LEAST_PREFIX;
  return { words, isBegun };
}

export type TitleRow = Pick<SearchHit, 'conversation' | 'key' | 'title'>;

/** Conversations by their titles come first, without those whose turns are found; turns get at least half of the places. */
export function titlesFirst(titled: readonly TitleRow[], turns: readonly SearchHit[], most: number): SearchHit[] {
  const found = new Set(turns.map(({ conversation }) => conversation));
  const first = titled
    .filter(({ conversation }) => !found.has(conversation))
    .slice(0, Math.max(Math.floor(most / 2), most - turns.length))
    .map((row) => ({ ...row, n: null, snippet: row.title }));
  return [...first, ...turns.slice(0, most - first.length)];
}

/** How many characters of a prompt, and of an answer, are indexed. All of them are indexed in one step. */
const MOST_SEARCHED = 1_048_576;

/** The texts of a turn that are indexed. */
export function searchedTexts({
  prompt,
  parts,
}: Pick<TurnRecord, 'prompt' | 'parts'>): [prompt: string, reply: string] {
  return [promptText(prompt).slice(0, MOST_SEARCHED), replyText(parts).slice(0, MOST_SEARCHED)];
}

/** A word in the index has at most so many characters, and all of a text together so many. */
const LONGEST_WORD = 128;
const MOST_LETTERS = 400_000;

/** The words of a text, each once, without case and accents: letters and digits alone. Of a very long text, only the first ones. */
export function wordsOf(text: string): string[] {
  const words = new Set<string>();
  let letters = 0;
  const plain = text.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '');
  for (const [word] of plain.matchAll(/[\p{L}\p{N}]+/gu)) {
    const kept = word.slice(0, LONGEST_WORD);
    if (words.has(kept)) continue;
    letters += kept.length;
    if (letters > MOST_LETTERS) break;
    words.add(kept);
  }
  return [...words];
}

const BEFORE = 60;
const LENGTH = 200;

/** The text around the first of the words. The index ignores case and accents, and so does this. */
export function snippet(text: string, words: readonly string[]): string {
  const at = firstOf(text, words);
  const start = at <= BEFORE ? 0 : at - BEFORE;
  const cut = text
    .slice(start, start + LENGTH)
    .replace(/\s+/g, ' ')
    .trim();
  return `${start > 0 ? '…' : ''}${cut}${start + LENGTH < text.length ? '…' : ''}`;
}

const WINDOW = 16_384;

/** Where the first of the words is. Looked for piece by piece: the text may be long, and the word is mostly near its beginning. */
function firstOf(text: string, words: readonly string[]): number {
  const wanted = words.map((word) => fold(word).folded);
  // An accent can be a character of its own.
  const overlap = 4 * Math.max(...words.map((word) => word.length));
  for (let start = 0; start < text.length; start += WINDOW) {
    const { folded, places } = fold(text.slice(start, start + WINDOW + overlap));
    const found = wanted.map((word) => folded.indexOf(word)).filter((at) => at >= 0);
    if (found.length > 0) return start + (places[Math.min(...found)] ?? 0);
  }
  return 0;
}

/** Without case and accents, with the original position of each character. */
function fold(text: string): { folded: string; places: number[] } {
  const characters: string[] = [];
  const places: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at).toLowerCase();
    const plain = character < '\u0080' ? character : character.normalize('NFD').replace(/\p{M}/gu, '');
    for (const each of plain) {
      characters.push(each);
      places.push(at);
    }
  }
  return { folded: characters.join(''), places };
}
