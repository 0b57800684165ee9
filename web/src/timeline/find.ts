import type { Engine } from 'throughline/client';
import { promptText } from '../../../src/core/turn/content.ts';

/** How far a search through a conversation has come. */
export interface Found {
  /** The turns that contain the words, rising. */
  readonly turns: readonly number[];
  /** Turns before this one were not searched yet; 1: all were. */
  readonly from: number;
}

const PAGE = 200;

/** Searches prompts and answers from the end to the start, a page at a time. Stops when the signal aborts. */
export async function* findTurns(
  engine: Pick<Engine, 'turns'>,
  id: string,
  words: string,
  signal: AbortSignal,
): AsyncGenerator<Found> {
  const wanted = folded(words);
  const found: number[] = [];
  for (let before: number | 'end' = 'end'; ; ) {
    const page: Awaited<ReturnType<Engine['turns']>> = await engine.turns(id, { before, limit: PAGE });
    if (signal.aborted) return;
    const [first] = page;
    const matching = page.filter(({ prompt, reply }) => folded(`${promptText(prompt)}\n${reply}`).includes(wanted));
    found.unshift(...matching.map(({ n }) => n));
    yield { turns: [...found], from: first?.n ?? 1 };
    if (first === undefined || first.n === 1) return;
    before = first.n;
  }
}

/** Without the differences that nobody types. */
function folded(text: string): string {
  return text.toLowerCase();
}

/** The next one to look at: after (1) or before (-1) the turn where somebody is, and around the end. */
export function nextOf(turns: readonly number[], at: number, step: 1 | -1): number | null {
  const next = step === 1 ? turns.find((n) => n > at) : turns.findLast((n) => n < at);
  return next ?? (step === 1 ? turns[0] : turns.at(-1)) ?? null;
}

/** Where the words stand in what is shown. */
export function rangesOf(root: Element, words: string, most: number): Range[] {
  const wanted = folded(words);
  const ranges: Range[] = [];
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node !== null && ranges.length < most; node = texts.nextNode()) {
    const text = folded(node.nodeValue ?? '');
    // A character may have another length in small letters. Then its place is not known.
    if (text.length !== node.nodeValue?.length) continue;
    for (
      let at = text.indexOf(wanted);
      at !== -1 && ranges.length < most;
      at = text.indexOf(wanted, at + wanted.length)
    ) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}
