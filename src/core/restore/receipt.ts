import type { Usage } from '../turn/usage.ts';
import type { ReceiptRung, Rung } from './restore-settings.ts';
import type { WindowFrom } from './traits.ts';

/**
 * How well it is shown that a session has the context. `proved`: seen in the agent's own storage. `consistent`: ids and
 * replayed history agree. `counted`: we delivered all of it ourselves. `none`: nothing shows it. `refuted`: shown to be wrong.
 *
 * @example
 * import type { Proof } from 'throughline';
 *
 * const GOOD: readonly Proof[] = ['proved', 'consistent'];
 * const { receipt } = await chat.ask('Go on.');
 * if (!GOOD.includes(receipt.proof)) console.warn('The context was not checked.');
 */
export type Proof = 'proved' | 'consistent' | 'counted' | 'none' | 'refuted';

/** What was left out of the turns that a session was told. Turns that it was not told at all are `dropped`. */
export interface Omissions {
  /** Turns that the session was told shortened: the beginning and the end of what was said. */
  readonly shortened: number;
  readonly leftOut: LeftOut;
}

export interface LeftOut {
  /** Tools whose input or output was left out or cut, or whose output the agent did not report to its end. */
  readonly outputs: number;
  /** Images that were only named. */
  readonly images: number;
  /** Audio and binary files, which are only named. */
  readonly files: number;
}

export const NOTHING_OMITTED: Omissions = { shortened: 0, leftOut: { outputs: 0, images: 0, files: 0 } };

export function addOmissions(a: Omissions, b: Omissions): Omissions {
  return { shortened: a.shortened + b.shortened, leftOut: addLeftOut(a.leftOut, b.leftOut) };
}

export function addLeftOut(a: LeftOut, b: LeftOut): LeftOut {
  return { outputs: a.outputs + b.outputs, images: a.images + b.images, files: a.files + b.files };
}

/**
 * A step that was tried and did not work, and why.
 *
 * @example
 * for (const { tried } of await chat.receipts()) for (const { rung, failure } of tried) console.log(rung, failure);
 */
export interface Tried {
  readonly rung: ReceiptRung;
  readonly sessionId: string | null;
  readonly failure: string;
}

/** How a session was brought to the head of its conversation, or why that failed. One for every attempt, and for every warm-up. */
export interface Receipt extends Omissions {
  /** The number of the turn it was for; null: a warm-up. */
  readonly turn: number | null;
  readonly attempt: number;
  readonly agent: string;
  readonly rung: ReceiptRung;
  /** The agent's id; null: the agent has not reported it yet, or there is no session. */
  readonly sessionId: string | null;
  /**
   * Turns of the history that the session has word for word; that it has only as its agent's own summary; and that it lacks.
   * Together: the whole history.
   */
  readonly carried: number;
  readonly condensed: number;
  readonly dropped: number;
  /**
   * The last turn before which this session lacks a part of an adopted session that could not be read; null: none. That part is neither
   * carried nor dropped, and the proof is then at most `counted`.
   */
  readonly unknownBefore: number | null;
  /** Turns that we put before the prompt ourselves. */
  readonly delivered: number;
  /** Estimated tokens of what was delivered. */
  readonly deliveredTokens: number;
  /**
   * The window of the model for which the history was fitted: at most half of it is delivered. Null: the settings name a budget
   * (`budgetTokens`), so the window does not matter; or an older version wrote the receipt.
   */
  readonly window: { readonly tokens: number; readonly from: WindowFrom } | null;
  /**
   * The place (a data home) that has the files of the work: the conversation was moved from there since its last turn, without them.
   * Left out: it was not moved.
   */
  readonly filesLeft?: string;
  /** The last turn of the session was interrupted, and it was told so. */
  readonly unsettled: boolean;
  /** Calls to the model made for restoring alone, and what they cost. */
  readonly modelCalls: number;
  readonly usage: Usage;
  /** Tools that ran during a replay with `allowTools`. */
  readonly toolsRan: readonly string[];
  /**
   * The final proof: the one after the prompt where there is one, else the one before. It is about the turns carried: nothing
   * proves what a summary holds.
   */
  readonly proof: Proof;
  /** What was proved before the prompt was sent, and after it; null: not known (yet), or the agent's storage cannot be read. */
  readonly before: Proof;
  readonly after: Proof | null;
  /** The steps that were tried before and failed. */
  readonly tried: readonly Tried[];
  readonly lockWaits: { readonly count: number; readonly ms: number };
  readonly ms: number;
}

/** The rungs by which a session gets its context from us. By the others it keeps its own, or there is none. */
const GIVING: readonly ReceiptRung[] = ['rehydrate', 'transcript', 'replay', 'fresh'];

/**
 * The rung by which a session was given its context, in the last of these receipts that tells of it. Null: the agent kept its own, or there
 * was no history yet.
 */
export function givenIn(receipts: readonly Receipt[]): ReceiptRung | null {
  const isGiven = ({ rung, carried, condensed = 0, dropped }: Receipt) =>
    GIVING.includes(rung) && carried + condensed + dropped > 0;
  return receipts.findLast(isGiven)?.rung ?? null;
}

/** The window for which a history was fitted of which something was left out, in words. Null: nothing was, or it is not known. */
export function windowText({ rung, dropped, shortened, window }: Receipt): string | null {
  const wasFitted = rung !== 'fresh' && rung !== 'none' && dropped + shortened > 0;
  if (window === null || !wasFitted) return null;
  return `fitted to a window of ${window.tokens.toLocaleString('en')} tokens (${FROM[window.from]})`;
}

const FROM: Record<WindowFrom, string> = {
  setting: 'from the settings',
  reported: 'reported by the agent',
  assumed: 'assumed: the agent has not reported it yet',
};

/**
 * A step of a restore has begun that starts a process: everything but continuing in a living one. `total`: how many turns the history
 * has.
 */
export interface RestoreStarted {
  readonly rung: Rung;
  readonly total: number;
}

/** How many turns the session has been given so far. A step that works ends with all of them. */
export interface RestoreProgress {
  readonly rung: Rung;
  readonly done: number;
  readonly total: number;
}
