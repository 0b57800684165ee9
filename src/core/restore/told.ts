import { type ContentBlock, type Prompt, promptText } from '../turn/content.ts';
import { type Exchange, exchangesOf, hasWords, type RepeatedMessage, unspaced } from './repeated-exchange.ts';

/**
 * An agent that loads a session repeats its history. That proves something only if we compare it with what was really said: agents
 * have answered "loaded" for an empty session, for another conversation, and for one that was cut off.
 */

/** What a session was told in one turn. */
export interface ToldTurn {
  readonly n: number;
  readonly prompt: Prompt;
  /** The hash of the transcript block before the prompt; null: there was none. */
  readonly block: string | null;
  /** Images that followed that block; left out: none. */
  readonly images?: number;
  /** The prompt was told by a replay, which may have shortened it and left out images. */
  readonly replayed?: true;
  /** What it answered; null: not known, or the session may have less. */
  readonly reply: string | null;
  /** False: the turn did not complete, so the session may lack it or have a part of it. */
  readonly certain: boolean;
}

/**
 * One thing that a session was given, word for word. `transcript`: a file that was put into the agent's own storage before it was
 * started; its hash is that of the file. `prompt`: a message that was sent, the prompt of the turn with this number; its hash is
 * that of the JSON of `content`.
 *
 * @example
 * import type { Told } from 'throughline';
 *
 * const told: Told = await chat.told();
 * console.log(told.parts.length);
 */
export type ToldPart =
  | { readonly as: 'transcript'; readonly text: string; readonly sha256: string }
  | { readonly as: 'prompt'; readonly turn: number; readonly content: Prompt; readonly sha256: string };

export type Comparison =
  /**
   * `found`: how many of the told turns were found. 0: none of them has to be there, so this proves nothing. `condensedTo`: the last
   * one that the agent repeats before its newest summary, or not at all because of it; 0: none.
   */
  | { readonly kind: 'consistent'; readonly found: number; readonly condensedTo: number }
  /** The session lacks a part of what it was told: `turn`, a turn or its answer; `content`, something of a prompt besides its text. */
  | { readonly kind: 'lacking'; readonly what: 'turn' | 'content'; readonly detail: string }
  /** The session has more than it was told: somebody else has used it. */
  | { readonly kind: 'beyond'; readonly detail: string };

/**
 * Looks for every told turn, in order. Unknown messages in between are accepted: agents add their own, and a failed attempt may have
 * left its prompt. But an answered prompt that is not ours shows that somebody else used the session.
 */
export function compareTold(repeated: readonly RepeatedMessage[], told: readonly ToldTurn[]): Comparison {
  const exchanges = exchangesOf(repeated);
  const stretches: Stretch[] = [];
  const newest = exchanges.findLastIndex((exchange) => exchange.summary);
  let condensedTo = 0;
  let before = exchanges.length;
  /** Turns after the last one that was found, which may be missing. */
  let turns: ToldTurn[] = [];
  const stretch = (from: number, turn: ToldTurn | null, exchange: Exchange | null) =>
    stretches.unshift({ turn, exchange, turns, since: exchanges.slice(from, before).filter(({ own }) => !own) });
  for (const turn of told.toReversed()) {
    const at = turn.certain ? lastMatch(exchanges, turn, before) : -1;
    if (at !== -1) {
      const missing = at < newest ? null : missingIn(exchanges[at] as Exchange, turn);
      if (missing !== null) return { kind: 'lacking', what: 'content', detail: withoutText(turn, missing) };
      if (at < newest) condensedTo = Math.max(condensedTo, turn.n);
      stretch(at + 1, turn, exchanges[at] ?? null);
      before = at;
      turns = [];
    } else if (!mustBeThere(turn)) turns = [turn, ...turns];
    else {
      // An agent need not repeat the turns that it has summarised, but all turns since then.
      const summary = exchanges.slice(0, before).findLastIndex((exchange) => exchange.summary);
      stretch(summary + 1, null, null);
      if (summary === -1 || foundIn(stretches) === 0)
        return { kind: 'lacking', what: 'turn', detail: lackingText(exchanges, turn, told.length) };
      condensedTo = Math.max(condensedTo, turn.n);
      turns = [];
      break;
    }
  }
  if (turns.length > 0) stretch(firstOf(turns, exchanges, before), null, null);
  const others = othersIn(stretches, told);
  return others > 0
    ? { kind: 'beyond', detail: beyondText(others) }
    : { kind: 'consistent', found: foundIn(stretches), condensedTo };
}

/** A turn that was found, and everything that was repeated up to the next one. */
interface Stretch {
  /** Null: the stretch before the first turn that was found. */
  readonly turn: ToldTurn | null;
  readonly exchange: Exchange | null;
  /** Turns that we told it in this stretch, which it may lack or have in part. */
  readonly turns: readonly ToldTurn[];
  readonly since: readonly Exchange[];
}

/** How many of the turns were found. */
function foundIn(stretches: readonly Stretch[]): number {
  const counts = stretches.map(({ turn, turns, since }) => {
    const seen = turns.filter((one) => since.some((exchange) => matches(exchange, one)));
    return (turn === null ? 0 : 1) + seen.length;
  });
  return counts.reduce((sum, count) => sum + count, 0);
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
  const anchors = stretches.flatMap(({ turn, exchange }, i) =>
    turn && exchange ? [isWhole(exchange, [...(stretches[i - 1]?.turns ?? []), turn])] : [],
  );
  // If this agent never repeats a prompt as we sent it, a different one proves nothing.
  const asGiven = anchors.length === 0 || anchors.includes(true);
  const counts = stretches.map(({ turn, turns, since }, i) => {
    const last = i === stretches.length - 1;
    if (last && turn !== null && turns.length === 0) return since.length;
    const theirs = since.filter((exchange) => {
      // An unanswered prompt may be left over from an attempt, but not after our last turn.
      if (!hasWords(exchange.text) || !(exchange.isAnswered || last)) return false;
      const ours = turns.filter((one) => matches(exchange, one));
      return ours.length === 0 || (asGiven && ours.every(isPlain) && !isWhole(exchange, ours));
    });
    // A command of ours may be repeated in other words, and an image not at all.
    const unseen = turns.filter((one) => !isPlain(one) && !since.some((exchange) => matches(exchange, one)));
    return Math.max(0, theirs.length - unseen.length);
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The rest of a message without our texts. An agent may join two prompts if the first was not answered. */
function restOf(message: string, turns: readonly ToldTurn[]): string {
  const texts = turns.flatMap(({ prompt }) => textsOf(prompt));
  if (texts.includes(message)) return '';
  // Longest first: one text may be a part of another.
  const longestFirst = texts
    .filter(hasWords)
    .map(unspaced)
    .toSorted((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, text) => rest.replaceAll(text, ''), unspaced(message));
}

/**
 * What is missing of a prompt besides its text; null: nothing. Agents write these things in their own ways. The text of a file must be
 * there; for an image or a sound, a word for it is enough.
 */
function missingIn(exchange: Exchange, turn: ToldTurn): string | null {
  if (turn.replayed) return null;
  const file = turn.prompt.find((block) => fileText(block) !== null && !exchange.contains(fileText(block) ?? ''));
  if (file?.type === 'resource') return `the text of ${file.resource.uri}`;
  const media = turn.prompt.filter(isMedia).length + (turn.images ?? 0);
  if (media === 0 || exchange.media >= media) return null;
  const files = turn.prompt.map((block) => unspaced(fileText(block) ?? '')).filter(hasWords);
  const own = files.reduce((rest, text) => rest.replace(text, ''), restOf(exchange.beside, [turn]));
  const words = own.match(STANDS_FOR_MEDIA)?.length ?? 0;
  const missing = media - exchange.media - words;
  if (missing <= 0) return null;
  return missing === 1 ? 'an image or a sound' : `${missing} images or sounds`;
}

const STANDS_FOR_MEDIA = /image|audio|picture/gi;

function fileText(block: ContentBlock): string | null {
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : null;
}

function isMedia(block: ContentBlock): boolean {
  if (block.type === 'image' || block.type === 'audio') return true;
  return block.type === 'resource' && 'blob' in block.resource && /^image\//.test(block.resource.mimeType ?? '');
}

/** Whether an agent that repeats it would repeat it unchanged. */
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

function matches(exchange: Exchange, { prompt, block, reply, certain, replayed }: ToldTurn): boolean {
  const texts = textsOf(prompt);
  if (exchange.own || !(exchange.holds(texts) || (replayed && exchange.isShortOf(promptText(prompt))))) return false;
  if (!certain) return texts.some(hasWords);
  if (block !== null && !exchange.blocks.includes(block)) return false;
  return reply === null || exchange.replies(reply);
}

/** A prompt that begins with a slash may have been sent as a command, by an older version: those are not repeated as we sent them. */
function mustBeThere({ prompt, certain }: ToldTurn): boolean {
  const hasContent = prompt.some((block) => isMedia(block) || fileText(block) !== null);
  return certain && (hasContent || textsOf(prompt).some(hasWords)) && !isCommand(prompt);
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

function withoutText({ n }: ToldTurn, missing: string): string {
  return `turn ${n} is repeated without ${missing}`;
}

function lackingText(exchanges: readonly Exchange[], turn: ToldTurn, told: number): string {
  if (exchanges.length === 0)
    return told === 1
      ? 'it does not repeat the turn that it was told'
      : `it repeats none of the ${told} turns that it was told`;
  return `turn ${turn.n} is missing or different in the history that it repeats`;
}
