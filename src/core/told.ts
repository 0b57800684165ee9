import type { Prompt } from './content.ts';
import { type Exchange, exchangesOf, hasWords, type RepeatedMessage, unspaced } from './repeated-exchange.ts';

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

export type Comparison =
  /** `found`: how many of the told turns were seen. None of them may have to be there, and then nothing is shown. */
  | { readonly kind: 'consistent'; readonly found: number }
  /** It does not have what it was told. */
  | { readonly kind: 'lacking'; readonly detail: string }
  /** It has that, and more since: somebody else has used it. */
  | { readonly kind: 'beyond'; readonly detail: string };

/**
 * Looks for every told turn, in order. Messages in between that nobody here knows of are no fault: agents add their own, and an
 * attempt that failed may have left its prompt. But what was asked and answered, and not by us, was somebody else's.
 */
export function compareTold(repeated: readonly RepeatedMessage[], told: readonly ToldTurn[]): Comparison {
  const exchanges = exchangesOf(repeated);
  const stretches: Stretch[] = [];
  let before = exchanges.length;
  /** Turns since the last one that was looked for which need not be there. */
  let turns: ToldTurn[] = [];
  const stretch = (from: number, turn: ToldTurn | null, exchange: Exchange | null) =>
    stretches.unshift({ turn, exchange, turns, since: exchanges.slice(from, before).filter(({ own }) => !own) });
  for (const turn of told.toReversed()) {
    const at = turn.certain ? lastMatch(exchanges, turn, before) : -1;
    if (at !== -1) {
      stretch(at + 1, turn, exchanges[at] ?? null);
      before = at;
      turns = [];
    } else if (!mustBeThere(turn)) turns = [turn, ...turns];
    else {
      // What an agent has summed up, it need not repeat; the turns since then it must.
      const summary = exchanges.slice(0, before).findLastIndex((exchange) => exchange.summary);
      stretch(summary + 1, null, null);
      if (summary === -1 || foundIn(stretches) === 0)
        return { kind: 'lacking', detail: lackingText(exchanges, turn, told.length) };
      turns = [];
      break;
    }
  }
  if (turns.length > 0) stretch(firstOf(turns, exchanges, before), null, null);
  const others = othersIn(stretches, told);
  return others > 0
    ? { kind: 'beyond', detail: beyondText(others) }
    : { kind: 'consistent', found: foundIn(stretches) };
}

/** A turn that was found, and all that was repeated up to the next one. */
interface Stretch {
  /** Null: what comes before the first one that has to be there. */
  readonly turn: ToldTurn | null;
  readonly exchange: Exchange | null;
  /** The turns that we told it then, and that it may lack or have in part. */
  readonly turns: readonly ToldTurn[];
  readonly since: readonly Exchange[];
}

/** How many of the turns were seen. */
function foundIn(stretches: readonly Stretch[]): number {
  const counts = stretches.map(({ turn, turns, since }) => {
    const seen = turns.filter((one) => since.some((exchange) => matches(exchange, one)));
    return (turn === null ? 0 : 1) + seen.length;
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

/** What came before the first of our turns was there when we took the session over. */
function firstOf(turns: readonly ToldTurn[], exchanges: readonly Exchange[], before: number): number {
  const at = exchanges.slice(0, before).findIndex((exchange) => turns.some((turn) => matches(exchange, turn)));
  return at === -1 ? before : at;
}

/** How many prompts are there that were not ours. */
function othersIn(stretches: readonly Stretch[], told: readonly ToldTurn[]): number {
  const blocks = new Set(told.map(({ block }) => block));
  const isWhole = (exchange: Exchange, turns: readonly ToldTurn[]) =>
    restOf(exchange.beside, turns) === '' && exchange.blocks.every((block) => blocks.has(block));
  const anchors = stretches.flatMap(({ turn, exchange }, i) =>
    turn && exchange ? [isWhole(exchange, [...(stretches[i - 1]?.turns ?? []), turn])] : [],
  );
  // Where prompts never come back as they were given, nothing is shown by one that does not.
  const asGiven = anchors.length === 0 || anchors.includes(true);
  const counts = stretches.map(({ turn, turns, since }, i) => {
    const last = i === stretches.length - 1;
    if (last && turn !== null && turns.length === 0) return since.length;
    const theirs = since.filter((exchange) => {
      // What was not answered may be left over from an attempt; after our last turn nothing is.
      if (!hasWords(exchange.text) || !(exchange.isAnswered || last)) return false;
      const ours = turns.filter((one) => matches(exchange, one));
      return ours.length === 0 || (asGiven && ours.every(isPlain) && !isWhole(exchange, ours));
    });
    // A command of ours may be repeated in other words, and a picture in none.
    const unseen = turns.filter((one) => !isPlain(one) && !since.some((exchange) => matches(exchange, one)));
    return Math.max(0, theirs.length - unseen.length);
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

/** What is left of a message without what we have said. An agent may make one of two prompts if the first was not answered. */
function restOf(message: string, turns: readonly ToldTurn[]): string {
  const texts = turns.flatMap(({ prompt }) => textsOf(prompt));
  if (texts.includes(message)) return '';
  // One may be a part of another.
  const longestFirst = texts
    .filter(hasWords)
    .map(unspaced)
    .toSorted((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, text) => rest.replaceAll(text, ''), unspaced(message));
}

/** Whether it would be repeated as it was given, if it is repeated at all. */
function isPlain({ prompt }: ToldTurn): boolean {
  return prompt.every(({ type }) => type === 'text') && !isCommand(prompt);
}

function lastMatch(exchanges: readonly Exchange[], turn: ToldTurn, before: number): number {
  for (let at = before - 1; at >= 0; at -= 1) {
    const exchange = exchanges[at];
    if (exchange !== undefined && matches(exchange, turn)) return at;
  }
  return -1;
}

function matches(exchange: Exchange, { prompt, block, reply, certain }: ToldTurn): boolean {
  const texts = textsOf(prompt);
  if (exchange.own || !exchange.holds(texts)) return false;
  if (!certain) return texts.some(hasWords);
  if (block !== null && !exchange.blocks.includes(block)) return false;
  return reply === null || exchange.replies(reply);
}

/** A command to the agent itself is not repeated as it was given, and of pictures there is nothing to compare. */
function mustBeThere({ prompt, certain }: ToldTurn): boolean {
  return certain && textsOf(prompt).some(hasWords) && !isCommand(prompt);
}

function isCommand(prompt: Prompt): boolean {
  return textsOf(prompt)[0]?.trimStart().startsWith('/') ?? false;
}

function textsOf(prompt: Prompt): string[] {
  return prompt.flatMap((block) => (block.type === 'text' ? [block.text] : []));
}

function beyondText(others: number): string {
  return `it has ${others} more ${others === 1 ? 'prompt' : 'prompts'} than we sent`;
}

function lackingText(exchanges: readonly Exchange[], turn: ToldTurn, told: number): string {
  if (exchanges.length === 0)
    return `it repeats nothing of the ${told === 1 ? 'turn' : `${told} turns`} that it was told`;
  return `the history that it repeats lacks turn ${turn.n}, or has it otherwise`;
}
