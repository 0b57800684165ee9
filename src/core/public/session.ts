import { given } from '../input/arguments.ts';
import { NOTHING_OMITTED, type Receipt } from '../restore/receipt.ts';
import type { Session, ShownSession } from '../restore/session.ts';

/**
 * One agent's own session as all interfaces show it. Its process and its files are not shown.
 *
 * @example
 * for (const { id, agent, state, watermark } of await chat.sessions()) console.log(agent, id, state, `up to turn ${watermark}`);
 */
export interface PublicSession extends ShownSession {
  readonly conversationId: string;
  /** The agent's id of the session that it continues; null: none. */
  readonly parent: string | null;
}

/**
 * How a session was brought to the head of its conversation, or why that failed. All of it is public.
 *
 * @example
 * const { receipt } = await chat.ask('Go on.');
 * console.log(`${receipt.rung}: ${receipt.carried} turns carried, ${receipt.dropped} dropped, ${receipt.proof}`);
 */
export type PublicReceipt = Receipt;

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
    const { id, conversation, agent, origin, watermark, dropped, condensedTo, state } = session;
    const { turns, usage, context, openedAt, usedAt } = session;
    const parent = session.parent === null ? null : (ids.get(session.parent) ?? null);
    return {
      ...{ id, conversationId: conversation, agent, origin, parent },
      ...{ watermark, dropped, condensedTo, state, turns, usage, context, openedAt, usedAt },
    };
  });
}

/** Field by field: a receipt of another version may have more. */
export function toPublicReceipt(stored: Receipt): PublicReceipt {
  const { turn, attempt, agent, rung, sessionId, carried, dropped, delivered, deliveredTokens, unsettled } = stored;
  // Receipts of older versions do not have these fields.
  const { shortened, leftOut } = { ...NOTHING_OMITTED, ...stored };
  const { condensed = 0, unknownBefore = null, window = null } = stored;
  const { modelCalls, usage, toolsRan, proof, before, after, tried, lockWaits, ms } = stored;
  return {
    ...{ turn, attempt, agent, rung, sessionId, carried, condensed, dropped, shortened, leftOut },
    ...{ unknownBefore, delivered, deliveredTokens, window, unsettled, ...given({ filesLeft: stored.filesLeft }) },
    ...{ modelCalls, usage, toolsRan, proof, before, after, tried, lockWaits, ms },
  };
}
