import type { Failure } from '../errors.ts';
import type { TimeOverride } from '../limits/time-limits.ts';
import type { SandboxProcess } from '../process.ts';
import type { ReceiptRung, TurnRestore } from '../restore/restore-settings.ts';
import type { Choices } from './choices.ts';
import type { Prompt } from './content.ts';
import type { Usage } from './usage.ts';

/*
 * A turn is one prompt from acceptance to its end.
 *
 *   queued ──▶ running ◀──▶ waiting (for a person's answer to a permission)
 *     ▲            │
 *     └────────────┤  a crash before anything was sent
 *                  ▼
 *   completed | failed | cancelled | interrupted      exactly one of these, once (R4)
 *
 * Only a queued turn is cancelled at once; a running one is asked to stop and ends itself. A turn that was sent and whose stream
 * was lost is interrupted: what happened is unknown, so it is not repeated (R6). But if the agent's own storage shows that it came
 * to its end, it is completed. A turn that a limit has ended is interrupted, too.
 */
export const TURN_ENDS = ['completed', 'failed', 'cancelled', 'interrupted'] as const;
export type TurnEnd = (typeof TURN_ENDS)[number];
export const TURN_STATES = ['queued', 'running', 'waiting', ...TURN_ENDS] as const;
/**
 * Where a turn is: queued, running or waiting for an answer; then one end.
 *
 * @example
 * const open = (await chat.turns()).filter(({ state }) => ['queued', 'running', 'waiting'].includes(state));
 */
export type TurnState = (typeof TURN_STATES)[number];

export function hasEnded(state: TurnState): state is TurnEnd {
  return (TURN_ENDS as readonly TurnState[]).includes(state);
}

/** A queued turn that begins. */
export function begun(turn: Turn, startedAt: number): Turn {
  return { ...turn, state: 'running', attempt: turn.attempt + 1, startedAt };
}

/** What happens when an agent asks for permission: ask a person and wait, or deny at once because nobody can answer. */
export const PERMISSION_MODES = ['ask', 'deny'] as const;
export type PermissionMode = (typeof PERMISSION_MODES)[number];

export function isPermissionMode(value: unknown): value is PermissionMode {
  return PERMISSION_MODES.some((mode) => mode === value);
}

/** What the caller set for this turn alone; it beats every setting (R7). `permissions` is filled in when the turn is accepted. */
export interface TurnOptions extends Choices {
  /** The agent's id of an existing session to use: of this conversation, or one to adopt. */
  readonly session?: string;
  /** The id for a new session of an agent that takes one. It is used for opening once (R1). */
  readonly newSession?: string;
  readonly restore?: TurnRestore;
  readonly permissions?: PermissionMode;
  readonly limits?: TimeOverride;
  /** Where the caller delivers the answer, as any text. The turn is pending until the caller confirms it. Left out: nowhere. */
  readonly deliverTo?: string;
  /** What its conversation had chosen for its agent when it was accepted. Left out: nothing. */
  readonly kept?: Choices;
}

/** The fields of a turn that are shown as they are stored. */
export interface ShownTurn {
  readonly id: string;
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
  /** The id of the queued turn whose place this one took, because it was edited or moved; null: none. */
  readonly replaces: string | null;
  /** The id of the turn that took its place while it was queued; null: none. */
  readonly replacedBy: string | null;
  /** It ended elsewhere: it came with a fork, an import, or a session that was adopted. */
  readonly imported: boolean;
  readonly cancelRequested: boolean;
  /** Null while it is open, and when it completed. */
  readonly failure: Failure | null;
  /**
   * It completed after the program that ran it, or the agent's process, had ended: its end was read from the agent's own storage.
   * Left out: its end was seen.
   */
  readonly recovered?: true;
  /** Its caller has delivered the answer to where `options.deliverTo` says. Left out: not yet, or it need not be. */
  readonly delivered?: true;
  readonly usage: Usage;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export interface Turn extends ShownTurn {
  readonly conversation: string;
  /** Null: not sent. Once set, the prompt may have reached the agent. */
  readonly sent: Sent | null;
}

/** Records that a prompt was sent. Written before its first byte leaves (R6). */
export interface Sent {
  readonly attempt: number;
  /** Our id of the prompt, to find it in the agent's storage; null: another program sent it. */
  readonly prompt: string | null;
  /** Our reference of the session; null: the agent has not reported its id yet. */
  readonly session: string | null;
  /** The session's position before the prompt; null: new, or not readable. */
  readonly position: string | null;
  readonly rung: ReceiptRung;
  /** Numbers of the turns delivered before the prompt, first and last; null: none. */
  readonly delivered: {
    readonly from: number;
    readonly to: number;
    readonly count: number;
    readonly hash: string;
    /** Images that followed them; left out: none. */
    readonly images?: number;
  } | null;
  /** The hash of the content that was sent; left out: an older version sent it, or another program. */
  readonly told?: string;
  /** The process that was given the prompt; null: there is none (a remote agent). */
  readonly process: SandboxProcess | null;
  readonly at: number;
}
