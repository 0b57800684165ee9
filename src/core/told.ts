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
  /** `summary`: the agent's own words for everything before. `note`: its own words in the place of the person's. */
  readonly who: 'person' | 'agent' | 'summary' | 'note';
  readonly text: string;
  /** The hashes of the transcript blocks in it. */
  readonly blocks: readonly string[];
  /** The text without these blocks. */
  readonly beside: string;
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
      if (exchange.prompt === '' || (exchange.reply === '' && !last)) return false;
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
  const texts = turns.flatMap(({ prompt }) => textsOf(prompt)).map(unspaced);
  // One may be a part of another.
  const longestFirst = texts.filter((text) => text !== '').toSorted((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, text) => rest.replaceAll(text, ''), unspaced(message));
}

/** Whether it would be repeated as it was given, if it is repeated at all. */
function isPlain({ prompt }: ToldTurn): boolean {
  return prompt.every(({ type }) => type === 'text') && !isCommand(prompt);
}

interface Exchange {
  readonly prompt: string;
  readonly beside: string;
  readonly blocks: readonly string[];
  readonly summary: boolean;
  /** Nobody but the agent has said it. */
  readonly own: boolean;
  reply: string;
}

function exchangesOf(repeated: readonly RepeatedMessage[]): Exchange[] {
  const exchanges: Exchange[] = [];
  for (const { who, text, blocks, beside } of repeated) {
    const last = exchanges.at(-1);
    const summary = who === 'summary';
    if (who !== 'agent')
      exchanges.push({ prompt: plain(text), beside, blocks, summary, own: summary || who === 'note', reply: '' });
    else if (last) last.reply = plain(`${last.reply} ${text}`);
  }
  return exchanges;
}

function lastMatch(exchanges: readonly Exchange[], turn: ToldTurn, before: number): number {
  return exchanges.slice(0, before).findLastIndex((exchange) => matches(exchange, turn));
}

function matches(exchange: Exchange, { prompt, block, reply, certain }: ToldTurn): boolean {
  if (exchange.own || !holds(exchange.prompt, textsOf(prompt))) return false;
  if (!certain) return textsOf(prompt).some((text) => text !== '');
  if (block !== null && !exchange.blocks.includes(block)) return false;
  return reply === null || answers(exchange.reply, plain(reply));
}

/** An agent whose stream broke said the beginning twice, and keeps it once; one may also keep more than it said. */
function answers(repeated: string, told: string): boolean {
  const [a, b] = [unspaced(repeated), unspaced(told)];
  return b === '' || a.includes(b) || (a !== '' && b.endsWith(a));
}

/** A command to the agent itself is not repeated as it was given, and of pictures there is nothing to compare. */
function mustBeThere({ prompt, certain }: ToldTurn): boolean {
  const texts = textsOf(prompt);
  return certain && texts.some((text) => text !== '') && !isCommand(prompt);
}

function isCommand(prompt: Prompt): boolean {
  return textsOf(prompt)[0]?.startsWith('/') ?? false;
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

function unspaced(text: string): string {
  return text.replace(/\s+/g, '');
}
