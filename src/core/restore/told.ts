import type { Prompt } from '../turn/content.ts';

/**
 * An agent that loads a session repeats its history. That proves something only if we compare it with what was really said: agents
 * have answered "loaded" for an empty session, for another conversation, and for one that was cut off.
 */

/** One message of the history that an agent repeats. */
export interface RepeatedMessage {
  /** `summary`: the agent's summary of everything before. `note`: a text that the agent wrote in the person's place. */
  readonly who: 'person' | 'agent' | 'summary' | 'note';
  readonly text: string;
  /** The hashes of the transcript blocks in it. */
  readonly blocks: readonly string[];
  /** The text without these blocks. */
  readonly beside: string;
}

/** What a session was told in one turn. */
export interface ToldTurn {
  readonly n: number;
  readonly prompt: Prompt;
  /** The hash of the transcript block before the prompt; null: there was none. */
  readonly block: string | null;
  /** What it answered; null: not known, or the session may have less. */
  readonly reply: string | null;
  /** False: the turn did not complete, so the session may lack it or have a part of it. */
  readonly certain: boolean;
}

export type Comparison =
  /** `found`: how many of the told turns were found. 0: none of them has to be there, so this proves nothing. */
  | { readonly kind: 'consistent'; readonly found: number }
  /** The session lacks a part of what it was told. */
  | { readonly kind: 'lacking'; readonly detail: string }
  /** The session has more than it was told: somebody else has used it. */
  | { readonly kind: 'beyond'; readonly detail: string };

/**
 * Looks for every told turn, in order. Unknown messages in between are accepted: agents add their own, and a failed attempt may have
 * left its prompt. But a prompt that was answered and is not ours is somebody else's.
 */
export function compareTold(repeated: readonly RepeatedMessage[], told: readonly ToldTurn[]): Comparison {
  const exchanges = exchangesOf(repeated);
  const stretches: Stretch[] = [];
  let before = exchanges.length;
  /** Turns after the last one that was found which need not be there. */
  let turns: ToldTurn[] = [];
  const stretch = (from: number, turn: ToldTurn | null, exchange: Exchange | null) =>
    stretches.unshift({
      turn,
      exchange,
      turns,
      since: exchanges.slice(from, before).filter(({ who }) => who === 'person'),
    });
  for (const turn of told.toReversed()) {
    const at = turn.certain ? exchanges.slice(0, before).findLastIndex((exchange) => matches(exchange, turn)) : -1;
    if (at !== -1) {
      stretch(at + 1, turn, exchanges[at] ?? null);
      before = at;
      turns = [];
    } else if (!mustBeThere(turn)) turns = [turn, ...turns];
    else {
      // An agent need not repeat the turns that it has summarised, but all turns since then.
      const summary = exchanges.slice(0, before).findLastIndex(({ who }) => who === 'summary');
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

/** A message in the person's place and the answers to it. */
interface Exchange extends RepeatedMessage {
  /** The text without white space. */
  readonly prompt: string;
  /** All answers, without white space. */
  reply: string;
}

function exchangesOf(repeated: readonly RepeatedMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const message of repeated) {
    const text = unspaced(message.text);
    const last = exchanges.at(-1);
    if (message.who !== 'agent') exchanges.push({ ...message, prompt: text, reply: '' });
    else if (last !== undefined) last.reply += text;
  }
  return exchanges;
}

/** A turn that was found, and everything that was repeated up to the next one. */
interface Stretch {
  /** Null: the stretch before the first turn that was found. */
  readonly turn: ToldTurn | null;
  readonly exchange: Exchange | null;
  /** Turns that we told it in this stretch, and that it may lack or have in part. */
  readonly turns: readonly ToldTurn[];
  readonly since: readonly Exchange[];
}

/** How many of the turns were found. */
function foundIn(stretches: readonly Stretch[]): number {
  return stretches.flatMap(({ turn, turns, since }) => [
    ...(turn === null ? [] : [turn]),
    ...turns.filter((one) => since.some((exchange) => matches(exchange, one))),
  ]).length;
}

/** Where our turns begin. Everything before was there when we adopted the session. */
function firstOf(turns: readonly ToldTurn[], exchanges: readonly Exchange[], before: number): number {
  const at = exchanges.slice(0, before).findIndex((exchange) => turns.some((turn) => matches(exchange, turn)));
  return at === -1 ? before : at;
}

/** How many prompts are not ours. */
function othersIn(stretches: readonly Stretch[], told: readonly ToldTurn[]): number {
  const blocks = new Set(told.map(({ block }) => block));
  const isWhole = (exchange: Exchange, turns: readonly ToldTurn[]) =>
    restOf(exchange.beside, turns) === '' && exchange.blocks.every((block) => blocks.has(block));
  // If this agent never repeats a prompt as we sent it, a different one proves nothing.
  const asGiven =
    stretches.every(({ turn }) => turn === null) ||
    stretches.some(
      ({ turn, exchange }, i) => turn && exchange && isWhole(exchange, [...(stretches[i - 1]?.turns ?? []), turn]),
    );
  const counts = stretches.map(({ turn, turns, since }, i) => {
    const last = i === stretches.length - 1;
    if (last && turn !== null && turns.length === 0) return since.length;
    const theirs = since.filter((exchange) => {
      // An unanswered prompt may be left over from an attempt, but not after our last turn.
      if (exchange.prompt === '' || !(exchange.reply !== '' || last)) return false;
      const ours = turns.filter((one) => matches(exchange, one));
      return ours.length === 0 || (asGiven && ours.every(isPlain) && !isWhole(exchange, ours));
    });
    // A command of ours may be repeated in other words, and an image not at all.
    const unseen = turns.filter((one) => !isPlain(one) && !since.some((exchange) => matches(exchange, one)));
    return Math.max(0, theirs.length - unseen.length);
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

/** What is left of a message without our texts. An agent may join two prompts if the first was not answered. */
function restOf(message: string, turns: readonly ToldTurn[]): string {
  // Longest first: one text may be a part of another.
  const longestFirst = turns.flatMap(wordsOf).toSorted((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, text) => rest.replaceAll(text, ''), unspaced(message));
}

/** Whether an agent that repeats it would repeat it unchanged. */
function isPlain({ prompt }: ToldTurn): boolean {
  return prompt.every(({ type }) => type === 'text') && !isCommand(prompt);
}

function matches(exchange: Exchange, turn: ToldTurn): boolean {
  const words = wordsOf(turn);
  if (exchange.who !== 'person' || !inOrder(exchange.prompt, words)) return false;
  if (!turn.certain) return words.length > 0;
  if (turn.block !== null && !exchange.blocks.includes(turn.block)) return false;
  return turn.reply === null || isReply(exchange.reply, unspaced(turn.reply));
}

function inOrder(whole: string, texts: readonly string[]): boolean {
  let from = 0;
  for (const text of texts) {
    const at = whole.indexOf(text, from);
    if (at === -1) return false;
    from = at + text.length;
  }
  return true;
}

/** An agent whose stream broke sends the beginning twice and keeps it once. An agent may also keep more than it sent. */
function isReply(repeated: string, told: string): boolean {
  return told === '' || repeated.includes(told) || (repeated !== '' && told.endsWith(repeated));
}

/** Commands to the agent are not repeated as we sent them, and images have nothing to compare. */
function mustBeThere(turn: ToldTurn): boolean {
  return turn.certain && wordsOf(turn).length > 0 && !isCommand(turn.prompt);
}

function isCommand(prompt: Prompt): boolean {
  return textsOf(prompt)[0]?.trimStart().startsWith('/') ?? false;
}

function textsOf(prompt: Prompt): string[] {
  return prompt.flatMap((block) => (block.type === 'text' ? [block.text] : []));
}

/** The texts of a turn that have more than white space, without white space. */
function wordsOf({ prompt }: ToldTurn): string[] {
  return textsOf(prompt).map(unspaced).filter(Boolean);
}

function unspaced(text: string): string {
  return text.replace(/\s+/g, '');
}

function beyondText(others: number): string {
  return `it has ${others} more ${others === 1 ? 'prompt' : 'prompts'} than we sent`;
}

function lackingText(exchanges: readonly Exchange[], turn: ToldTurn, told: number): string {
  if (exchanges.length === 0)
    return told === 1
      ? 'it does not repeat the turn that it was told'
      : `it repeats none of the ${told} turns that it was told`;
  return `turn ${turn.n} is missing or different in the history that it repeats`;
}
