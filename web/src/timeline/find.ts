import { useState } from 'react';
import type { Engine, RecordPart } from 'throughline/client';
import { create } from 'zustand';
import { promptText } from '../../../src/core/turn/content.ts';
import type { ToolPart } from '../../../src/core/turn/record.ts';
import { readRange } from '../data/conversation/reads.ts';
import { hasWords, placesOfWords } from '../search/search.ts';

/** What somebody looks for: a text as it was typed, or the words of a search, in any order. */
export interface Sought {
  readonly text: string;
  readonly isWords: boolean;
}

export const NOTHING_SOUGHT: Sought = { text: '', isWords: false };

/** The progress of a search through a conversation. */
export interface Found {
  /** The turns that contain it, in ascending order. */
  readonly turns: readonly number[];
  /** Turns before this one were not searched yet; 1: all were. */
  readonly from: number;
}

const PAGE = 200;

/** The parts of open turns so far, by number: they have no record yet. */
export type OpenParts = ReadonlyMap<number, readonly RecordPart[]>;

/** Searches prompts, answers, thoughts and tools from the end to the start, a page at a time. Stops when the signal aborts. */
export async function* findTurns(
  engine: Pick<Engine, 'turns' | 'records'>,
  id: string,
  sought: Sought,
  { signal, open }: { readonly signal: AbortSignal; readonly open: OpenParts },
): AsyncGenerator<Found> {
  const found: number[] = [];
  for (let before: number | 'end' = 'end'; ; ) {
    const page: Awaited<ReturnType<Engine['turns']>> = await engine.turns(id, { before, limit: PAGE });
    const [first, last] = [page.at(0), page.at(-1)];
    const range = { after: (first?.n ?? 1) - 1, upTo: last?.n ?? 0 };
    const records = await readRange(range, (part) => engine.records(id, part));
    if (signal.aborted) return;
    const parts = new Map([...open, ...records.map((record) => [record.n, record.parts] as const)]);
    const matching = page.filter(({ n, prompt, reply }) =>
      isIn([promptText(prompt), reply, ...(parts.get(n) ?? []).map(textOf)].join('\n'), sought),
    );
    found.unshift(...matching.map(({ n }) => n));
    yield { turns: [...found], from: first?.n ?? 1 };
    if (first === undefined || first.n === 1) return;
    before = first.n;
  }
}

/** The visible text of a part, also of a folded one. */
function textOf(part: RecordPart): string {
  return part.type === 'tool' ? toolText(part) : part.text;
}

/** Its name, target, command and output. */
export function toolText({ name, target, input, output }: ToolPart): string {
  return [name, target, commandIn(input), output].filter((text) => text !== null).join('\n');
}

/** The command in the input of a tool; null: there is none. */
export function commandIn(input: ToolPart['input']): string | null {
  const { command } = (input ?? {}) as { command?: unknown };
  return typeof command === 'string' ? command : null;
}

/** What somebody looks for now, and the turn of the current match. */
export const useFinding = create<{ readonly sought: Sought; readonly at: number | null }>(() => ({
  sought: NOTHING_SOUGHT,
  at: null,
}));

/** Whether a foldable part of turn `n` is open: as somebody chose, otherwise `atFirst`, or when it contains the current match. */
export function useFold(n: number, text: () => string, atFirst = false): readonly [boolean, () => void] {
  const [chosen, choose] = useState<boolean | null>(null);
  const isFound = useFinding(({ sought, at }) => at === n && isIn(text(), sought));
  const isShown = chosen ?? (atFirst || isFound);
  return [isShown, () => choose(!isShown)];
}

/** Whether the rest of a long text is shown: as somebody chose, otherwise when it contains what somebody looks for. */
export function useRest(rest: () => string): readonly [boolean, () => void] {
  const [isChosen, choose] = useState(false);
  const isFound = useFinding(({ sought, at }) => at !== null && isIn(rest(), sought));
  return [isChosen || isFound, () => choose(true)];
}

function isIn(text: string, sought: Sought): boolean {
  if (sought.isWords) return hasWords(text, sought.text);
  return sought.text.trim() !== '' && text.toLowerCase().includes(sought.text.toLowerCase());
}

/** The next match after (1) or before (-1) turn `at`. After the last one comes the first again, and before the first the last. */
export function nextOf(turns: readonly number[], at: number, step: 1 | -1): number | null {
  const next = step === 1 ? turns.find((n) => n > at) : turns.findLast((n) => n < at);
  return next ?? (step === 1 ? turns[0] : turns.at(-1)) ?? null;
}

/** Where it is in the rendered text. */
export function rangesOf(root: Element, sought: Sought, most: number): Range[] {
  const ranges: Range[] = [];
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node !== null && ranges.length < most; node = texts.nextNode()) {
    const text = node.nodeValue ?? '';
    const places = sought.isWords ? placesOfWords(text, sought.text) : placesOf(text, sought.text);
    for (const [from, to] of places.slice(0, most - ranges.length)) {
      const range = document.createRange();
      range.setStart(node, from);
      range.setEnd(node, to);
      ranges.push(range);
    }
  }
  return ranges;
}

/** Where a text contains the words as they were typed, from and to, in ascending order. */
function placesOf(text: string, words: string): (readonly [number, number])[] {
  const [plain, wanted] = [text.toLowerCase(), words.toLowerCase()];
  // A few characters change their length in lower case. Then the positions are not known.
  if (plain.length !== text.length) return [];
  const places: (readonly [number, number])[] = [];
  for (let at = plain.indexOf(wanted); at !== -1; at = plain.indexOf(wanted, at + wanted.length)) {
    places.push([at, at + wanted.length]);
  }
  return places;
}
