import type { Failure } from '../errors.ts';
import type { Delayed } from '../limits/slots.ts';
import type { ReceiptRung } from '../restore/restore-settings.ts';
import type { Prompt } from '../turn/content.ts';
import type { Permission, PermissionOption, PermissionState } from '../turn/permission.ts';
import { type Hindrance, NO_HINDRANCE, type Stranded } from '../turn/standing.ts';
import { hasEnded, type Sent, type Turn, type TurnOptions, type TurnState } from '../turn/turn.ts';
import type { Usage } from '../turn/usage.ts';

/** A turn as all interfaces show it. */
export interface PublicTurn {
  readonly id: string;
  readonly conversationId: string;
  /** Its number within the conversation, from 1. */
  readonly n: number;
  /** The caller's idempotency key, unique per owner; null: none given. */
  readonly requestId: string | null;
  readonly state: TurnState;
  readonly agent: string;
  /** Empty: a program of the caller runs the turn, and has not given its prompt. */
  readonly prompt: Prompt;
  /** What the caller set for this turn alone, and how its questions are handled (`permissions`). */
  readonly options: TurnOptions;
  /** How many times a worker has begun it. */
  readonly attempt: number;
  /** The agent's id of the session that was given it; null: none yet. */
  readonly sessionId: string | null;
  /** The id of the turn that this one repeats; null: none. */
  readonly retryOf: string | null;
  /** It ended elsewhere: it came with a fork, an import, or a session that was adopted. */
  readonly imported: boolean;
  /** Null: not sent. Once set, the prompt may have reached the agent. */
  readonly sent: PublicSent | null;
  readonly cancelRequested: boolean;
  /** Why it is open and no process runs it; null: it has ended, is run, or is about to be. */
  readonly stranded: Stranded | null;
  /** Why it has not begun although a process will run it; null: it has, or is about to. */
  readonly delayed: Delayed | null;
  /** Null while it is open, and when it completed. */
  readonly failure: Failure | null;
  /**
   * It completed after the program that ran it, or the agent's process, had ended: its end was read from the agent's own storage.
   * Left out: its end was seen.
   */
  readonly recovered?: true;
  readonly usage: Usage;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** How and when the prompt of a turn was sent. */
export interface PublicSent {
  readonly attempt: number;
  /** How its session was given the context. */
  readonly rung: ReceiptRung;
  /** Earlier turns that were told to the agent before the prompt: the first and the last number, and how many; null: none. */
  readonly delivered: { readonly from: number; readonly to: number; readonly count: number } | null;
  readonly at: number;
}

/** A question that an agent asked during a turn, with its answer. */
export interface PublicPermission {
  readonly id: string;
  readonly conversationId: string;
  readonly turnId: string;
  readonly attempt: number;
  readonly title: string;
  /** What the agent wants to do, as it said it (an ACP tool call). */
  readonly toolCall: unknown;
  readonly options: readonly PermissionOption[];
  readonly state: PermissionState;
  /** The option chosen; null: not answered. */
  readonly optionId: string | null;
  /** Who answered; null: not answered. */
  readonly answeredBy: string | null;
  /** Why it was denied or withdrawn; null: it was not. */
  readonly reason: string | null;
  readonly askedAt: number;
  readonly endedAt: number | null;
}

/** `hindrance`: of its conversation. */
export function toPublicTurn(stored: Turn, hindrance: Hindrance = NO_HINDRANCE): PublicTurn {
  const { id, conversation, n, requestId, state, agent, prompt, options, attempt, sessionId, retryOf, imported, sent } =
    stored;
  const { cancelRequested, failure, recovered, usage, createdAt, startedAt, endedAt } = stored;
  return {
    ...{
      id,
      conversationId: conversation,
      n,
      requestId,
      state,
      agent,
      prompt,
      options,
      attempt,
      sessionId,
      retryOf,
      imported,
    },
    sent: sent && toPublicSent(sent),
    cancelRequested,
    ...(hasEnded(state) ? NO_HINDRANCE : hindrance),
    ...{ failure, ...(recovered && { recovered }), usage, createdAt, startedAt, endedAt },
  };
}

/** Without our names of session and prompt, the process, the position in the agent's storage, and the hash of what was delivered. */
export function toPublicSent({ attempt, rung, delivered, at }: Sent): PublicSent {
  return {
    attempt,
    rung,
    delivered: delivered && { from: delivered.from, to: delivered.to, count: delivered.count },
    at,
  };
}

export function toPublicPermission(stored: Permission): PublicPermission {
  const { id, conversation, turn, attempt, title, toolCall, options } = stored;
  const { state, optionId, answeredBy, reason, askedAt, endedAt } = stored;
  return {
    ...{ id, conversationId: conversation, turnId: turn, attempt, title, toolCall, options },
    ...{ state, optionId, answeredBy, reason, askedAt, endedAt },
  };
}
