import { given } from '../input/arguments.ts';
import { type LeftOut, NOTHING_OMITTED, type Proof, type Receipt, type Tried } from '../restore/receipt.ts';
import type { ReceiptRung } from '../restore/restore-settings.ts';
import type { Session, SessionOrigin, SessionState } from '../restore/session.ts';
import type { Usage } from '../turn/usage.ts';

/**
 * One agent's own session as all interfaces show it. What we know of its process and its files stays inside.
 *
 * @example
 * for (const { id, agent, state, watermark } of await chat.sessions()) console.log(agent, id, state, `up to turn ${watermark}`);
 */
export interface PublicSession {
  /** The agent's id of it: what `session` of a prompt takes, and what `sessionId` is elsewhere. */
  readonly id: string;
  readonly conversationId: string;
  readonly agent: string;
  readonly origin: SessionOrigin;
  /** The agent's id of the session that it continues; null: none. */
  readonly parent: string | null;
  /** The number of the last turn that it was told. */
  readonly watermark: number;
  /** How many turns up to the watermark it was never told, because a budget left them out. */
  readonly dropped: number;
  /** The number of the last turn that it has only as its agent's own summary; 0: none. */
  readonly condensedTo: number;
  readonly state: SessionState;
  /** How many turns it was given. */
  readonly turns: number;
  readonly usage: Usage;
  readonly openedAt: number;
  readonly usedAt: number;
}

/**
 * How a session was brought to the head of its conversation, or why that failed. One for every attempt, and for every warm-up.
 *
 * @example
 * const { receipt } = await chat.ask('Go on.');
 * console.log(`${receipt.rung}: ${receipt.carried} turns carried, ${receipt.dropped} dropped, ${receipt.proof}`);
 */
export interface PublicReceipt {
  /** The number of the turn it was for; null: a warm-up. */
  readonly turn: number | null;
  readonly attempt: number;
  readonly agent: string;
  readonly rung: ReceiptRung;
  /** The agent's id; null: the agent has not named its session yet, or there is none. */
  readonly sessionId: string | null;
  /**
   * Turns of the history that the session has word for word; that it has only as its agent's own summary; and that it lacks.
   * Together: the whole history.
   */
  readonly carried: number;
  readonly condensed: number;
  readonly dropped: number;
  /** Turns of `carried` that the session was told shortened: the beginning and the end of what was said. */
  readonly shortened: number;
  /** What was left out of the turns that were carried: outputs of tools, images, and other files, which were only named. */
  readonly leftOut: LeftOut;
  /**
   * The last turn before which something is missing that nobody could read, of a session that was adopted, and that this session
   * does not have either; null: nothing is. It is neither carried nor dropped.
   */
  readonly unknownBefore: number | null;
  /** Turns that we put before the prompt ourselves. */
  readonly delivered: number;
  /** Estimated tokens of what was delivered. */
  readonly deliveredTokens: number;
  /**
   * The place (a data home) where the files of the work are: the conversation was moved from there since its last turn, and they are not
   * here. Left out: they are where they were.
   */
  readonly filesLeft?: string;
  /** The last turn of the session was interrupted, and it was told so. */
  readonly unsettled: boolean;
  /** Calls to the model made for restoring alone, and what they cost. */
  readonly modelCalls: number;
  readonly usage: Usage;
  /** Tools that ran during a replay with `allowTools`. */
  readonly toolsRan: readonly string[];
  /** How far the turns carried are proved: `after` where there is one, else `before`. Nothing proves what a summary holds. */
  readonly proof: Proof;
  /** What was proved before the prompt was sent, and after it; null: not known (yet), or the agent's storage cannot be read. */
  readonly before: Proof;
  readonly after: Proof | null;
  /** What was tried first and did not work. */
  readonly tried: readonly Tried[];
  readonly lockWaits: { readonly count: number; readonly ms: number };
  readonly ms: number;
}

/**
 * A receipt with its place in the conversation.
 *
 * @example
 * for (const { n, receipt } of await chat.restores({ before: 'end', limit: 10 })) console.log(n, receipt.rung, receipt.proof);
 */
export interface PublicRestore {
  /** The number of the turn it was for; of a warm-up, the last turn before it (0: none). */
  readonly n: number;
  readonly receipt: PublicReceipt;
}

/** All sessions of a conversation in the order given, each with the agent's id of its parent. */
export function toPublicSessions(stored: readonly Session[]): PublicSession[] {
  const ids = new Map(stored.map(({ ref, id }) => [ref, id]));
  return stored.map((session) => {
    const { id, conversation, agent, origin, watermark, dropped, condensedTo, state, turns, usage, openedAt, usedAt } =
      session;
    const parent = session.parent === null ? null : (ids.get(session.parent) ?? null);
    return {
      ...{ id, conversationId: conversation, agent, origin, parent },
      ...{ watermark, dropped, condensedTo, state, turns, usage, openedAt, usedAt },
    };
  });
}

const NOTHING_CONDENSED = { condensed: 0 };

export function toPublicReceipt(stored: Receipt): PublicReceipt {
  const { turn, attempt, agent, rung, sessionId, carried, dropped, delivered, deliveredTokens, unsettled } = stored;
  // Receipts of older versions say neither what was condensed nor what was told in part, nor what is unknown.
  const { shortened, leftOut, condensed } = { ...NOTHING_OMITTED, ...NOTHING_CONDENSED, ...stored };
  const unknownBefore = stored.unknownBefore ?? null;
  const { modelCalls, usage, toolsRan, proof, before, after, tried, lockWaits, ms } = stored;
  return {
    ...{ turn, attempt, agent, rung, sessionId, carried, condensed, dropped, shortened, leftOut },
    ...{ unknownBefore, delivered, deliveredTokens, unsettled, ...given({ filesLeft: stored.filesLeft }) },
    ...{ modelCalls, usage, toolsRan, proof, before, after, tried, lockWaits, ms },
  };
}
