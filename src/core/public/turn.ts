import type { Failure } from '../errors.ts';
import type { Delayed } from '../limits/slots.ts';
import type { ReceiptRung } from '../restore/restore-settings.ts';
import type { ToldPart } from '../restore/told.ts';
import type { Prompt } from '../turn/content.ts';
import type { Permission, PermissionOption, PermissionState } from '../turn/permission.ts';
import type { RecordPart, ToolPart } from '../turn/record.ts';
import { type Hindrance, NO_HINDRANCE, type Stranded } from '../turn/standing.ts';
import { hasEnded, type Sent, type Turn, type TurnOptions, type TurnState } from '../turn/turn.ts';
import type { Usage } from '../turn/usage.ts';

/**
 * A turn as all interfaces show it.
 *
 * @example
 * const { turn } = await chat.send('Hello').accepted;
 * console.log(turn.id, turn.n, turn.state);
 */
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
  /** The id of the queued turn whose place this one took, because it was edited or moved; null: none. */
  readonly replaces: string | null;
  /** The id of the turn that took its place while it was queued; null: none. */
  readonly replacedBy: string | null;
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
  /** Its caller has delivered the answer to where `options.deliverTo` says. Left out: not yet, or it need not be. */
  readonly delivered?: true;
  readonly usage: Usage;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/**
 * A turn without what was said in it: enough to draw a long conversation.
 *
 * @example
 * for (const { n, sessionId, rung } of await chat.outline()) console.log(n, sessionId, rung);
 */
export interface TurnOutline
  extends Pick<
    PublicTurn,
    'id' | 'n' | 'state' | 'agent' | 'sessionId' | 'imported' | 'usage' | 'startedAt' | 'endedAt'
  > {
  /** How its session was given the context; null: nothing was sent. */
  readonly rung: ReceiptRung | null;
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

/**
 * Exactly what the session of a turn was told for one attempt at it.
 *
 * @example
 * const told = await chat.told(); // of the last turn
 * console.log(JSON.stringify(told, null, 2));
 */
export interface PublicTold {
  readonly turnId: string;
  readonly attempt: number;
  /** How its session was given the context. */
  readonly rung: ReceiptRung;
  /** The agent's id of the session; null: the agent never named it. */
  readonly sessionId: string | null;
  readonly at: number;
  /** In the order in which the session was given them; the last one is the turn's own prompt, with what was put before it. */
  readonly parts: readonly ToldPart[];
}

/**
 * A question that an agent asked during a turn, with its answer.
 *
 * @example
 * for (const { id, title, options } of await tl.permissions({ open: true })) {
 *   const no = options.find(({ kind }) => kind === 'reject_once');
 *   if (no && title.includes('delete')) await tl.answer(id, no.optionId);
 * }
 */
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

/**
 * A tool that an agent used in a turn.
 *
 * @example
 * const { tools } = await chat.ask('Tidy up the notes.');
 * for (const { title, target, status } of tools) console.log(title, target, status);
 */
export interface PublicTool {
  readonly id: string;
  /** What the agent calls it. */
  readonly title: string;
  readonly kind: string;
  /** What it worked on: a path, a command; null: the agent did not say. */
  readonly target: string | null;
  readonly input: unknown;
  /** What it printed and changed, the beginning and the end of it; null: nothing is known. */
  readonly output: string | null;
  /** `unknown`: it began, and nobody saw its end. */
  readonly status: ToolPart['status'];
  /** How long it took, in milliseconds. Left out: it is not known. */
  readonly ms?: number;
}

export function toPublicTools(parts: readonly RecordPart[]): PublicTool[] {
  return parts
    .filter((part) => part.type === 'tool')
    .map(({ id, name, kind, target, input, output, status, ms }) => ({
      ...{ id, title: name, kind, target, input, output, status },
      ...(ms !== undefined && { ms }),
    }));
}

/** `hindrance`: of its conversation. */
export function toPublicTurn(stored: Turn, hindrance: Hindrance = NO_HINDRANCE): PublicTurn {
  const { id, conversation, n, requestId, state, agent, prompt, options, attempt, sessionId, retryOf, imported, sent } =
    stored;
  const { replaces, replacedBy, cancelRequested, failure, recovered, delivered, usage, createdAt, startedAt, endedAt } =
    stored;
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
      replaces,
      replacedBy,
      imported,
    },
    sent: sent && toPublicSent(sent),
    cancelRequested,
    ...(hasEnded(state) ? NO_HINDRANCE : hindrance),
    ...{
      failure,
      ...(recovered && { recovered }),
      ...(delivered && { delivered }),
      usage,
      createdAt,
      startedAt,
      endedAt,
    },
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
