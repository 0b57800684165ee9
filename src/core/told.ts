import type { Prompt } from './content.ts';

/**
 * An agent that loads a session repeats its history. That says little unless it is compared with what was really said: agents
 * have answered "loaded" to an empty session, to another conversation, and to one that was cut off.
 */

/** What one turn told a session. */
export interface ToldTurn {
  readonly n: number;
  readonly prompt: Prompt;
  /** The hash of the block that was put before the prompt; null: none was. */
  readonly block: string | null;
  /** What it answered; null: not known, or it may be less than that. */
  readonly reply: string | null;
  /** False: it may lack the turn, or have a part of it: the turn did not complete. */
  readonly certain: boolean;
}

/** One message of the history that an agent repeats. */
export interface RepeatedMessage {
  /** `summary`: the agent's own words for everything before. */
  readonly who: 'person' | 'agent' | 'summary';
  readonly text: string;
  /** The hashes of the transcript blocks in it. */
  readonly blocks: readonly string[];
}

export type Comparison =
  /** `found`: how many of the told turns were seen. None of them may have to be there, and then nothing is shown. */
  | { readonly kind: 'consistent'; readonly found: number }
  /** It does not have what it was told. */
  | { readonly kind: 'lacking'; readonly detail: string }
  /** It has that, and more since: somebody else has used it. */
  | { readonly kind: 'beyond'; readonly detail: string };

/**
 * Looks for every told turn, in order. Messages in between that nobody here knows of are no fault: agents add their own, and an
 * attempt that failed may have left its prompt. But what was asked and answered in between, and not by us, was somebody else's.
 */
export function compareTold(repeated: readonly RepeatedMessage[], told: readonly ToldTurn[]): Comparison {
  const exchanges = exchangesOf(repeated);
  let before = exchanges.length;
  let found = 0;
  /** Turns that need not be there, since the last one that was found. */
  let passed = 0;
  let others = 0;
  for (const [i, turn] of told.toReversed().entries()) {
    const at = lastMatch(exchanges, turn, before);
    if (at === -1) {
      passed += 1;
      if (!mustBeThere(turn)) continue;
      // What an agent has summed up, it need not repeat; the turns since then it must.
      if (found > 0 && exchanges.slice(0, before).some(({ summary }) => summary)) break;
      return { kind: 'lacking', detail: lackingText(exchanges, turn, told.length) };
    }
    const since = exchanges.slice(at + 1, before).filter(({ summary }) => !summary);
    if (i === 0 && turn.certain && since.length > 0) return { kind: 'beyond', detail: beyondText(since.length) };
    const answered = since.filter(({ prompt, reply }) => prompt !== '' && reply !== '').length;
    if (turn.certain) others += Math.max(0, answered - passed);
    before = at;
    found += 1;
    passed = 0;
  }
  return others > 0 ? { kind: 'beyond', detail: beyondText(others) } : { kind: 'consistent', found };
}

interface Exchange {
  readonly prompt: string;
  readonly blocks: readonly string[];
  readonly summary: boolean;
  reply: string;
}

function exchangesOf(repeated: readonly RepeatedMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const { who, text, blocks } of repeated) {
    const last = exchanges.at(-1);
    if (who !== 'agent') exchanges.push({ prompt: plain(text), blocks, summary: who === 'summary', reply: '' });
    else if (last) last.reply = plain(`${last.reply} ${text}`);
  }
  return exchanges;
}

function lastMatch(exchanges: readonly Exchange[], turn: ToldTurn, before: number): number {
  return exchanges.slice(0, before).findLastIndex((exchange) => matches(exchange, turn));
}

function matches(exchange: Exchange, { prompt, block, reply, certain }: ToldTurn): boolean {
  if (exchange.summary || !holds(exchange.prompt, textsOf(prompt))) return false;
  if (!certain) return true;
  if (block !== null && !exchange.blocks.includes(block)) return false;
  return reply === null || answers(exchange.reply, plain(reply));
}

/** An agent whose stream broke said the beginning twice, and keeps it once; one may also keep more than it said. */
function answers(repeated: string, told: string): boolean {
  const [a, b] = [repeated, told].map((text) => text.replaceAll(' ', '')) as [string, string];
  return b === '' || a.includes(b) || (a !== '' && b.endsWith(a));
}

/** A command to the agent itself is not repeated as it was given, and of pictures there is nothing to compare. */
function mustBeThere({ prompt, certain }: ToldTurn): boolean {
  const texts = textsOf(prompt);
  return certain && texts.some((text) => text !== '') && !texts[0]?.startsWith('/');
}

function textsOf(prompt: Prompt): string[] {
  return prompt.flatMap((block) => (block.type === 'text' ? [plain(block.text)] : []));
}

/** All of the texts, one after the other. */
function holds(whole: string, texts: readonly string[]): boolean {
  let from = 0;
  for (const text of texts) {
    const at = whole.indexOf(text, from);
    if (at === -1) return false;
    from = at + text.length;
  }
  return true;
}

function beyondText(others: number): string {
  return `it has ${others} more ${others === 1 ? 'prompt' : 'prompts'} than we sent`;
}

function lackingText(exchanges: readonly Exchange[], turn: ToldTurn, told: number): string {
  if (exchanges.length === 0)
    return `it repeats nothing of the ${told === 1 ? 'turn' : `${told} turns`} that it was told`;
  return `the history that it repeats lacks turn ${turn.n}, or has it otherwise`;
}

function plain(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
