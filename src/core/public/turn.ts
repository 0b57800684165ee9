import type { Failure } from '../errors.ts';
import type { Delayed } from '../limits/slots.ts';
import type { ReceiptRung } from '../restore/restore-settings.ts';
import type { ToldPart } from '../restore/told.ts';
import type { Permission, ShownPermission } from '../turn/permission.ts';
import type { RecordPart, ToolPart } from '../turn/record.ts';
import { type Hindrance, NO_HINDRANCE, type Stranded } from '../turn/standing.ts';
import { hasEnded, type Sent, type ShownTurn, type Turn } from '../turn/turn.ts';

/**
 * A turn as all interfaces show it.
 *
 * @example
 * const { turn } = await chat.send('Hello').accepted;
 * console.log(turn.id, turn.n, turn.state);
 */
export interface PublicTurn extends ShownTurn {
  readonly conversationId: string;
  /** Null: not sent. Once set, the prompt may have reached the agent. */
  readonly sent: PublicSent | null;
  /** Why it is open and no process runs it; null: it has ended, or a process runs it or soon will. */
  readonly stranded: Stranded | null;
  /** Why it has not begun although a process will run it; null: it has begun, or will begin soon. */
  readonly delayed: Delayed | null;
}

/**
 * A turn without its texts: enough to draw a long conversation.
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
  /**
   * The rung by which a session was given its context for it, in an attempt or a warm-up before it: `rehydrate`, `transcript`, `replay` or
   * `fresh`. Null: the agent kept its own context, or nothing was sent.
   */
  readonly given: ReceiptRung | null;
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
  /** The agent's id of the session; null: the agent never reported it. */
  readonly sessionId: string | null;
  readonly at: number;
  /** In the order in which the session got them; the last one is the turn's own prompt, with the block before it. */
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
export interface PublicPermission extends ShownPermission {
  readonly conversationId: string;
  readonly turnId: string;
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
  /** The agent's name for it. */
  readonly title: string;
  readonly kind: string;
  /** What it worked on: a path, a command; null: the agent did not say. */
  readonly target: string | null;
  readonly input: unknown;
  /** The beginning and the end of what it printed and changed; null: unknown. */
  readonly output: string | null;
  /** `unknown`: it began, and its end was not reported. */
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

/** As it is stored, a hint says `retry KEY`: a turn is copied with its hint, and its copy has another id. */
export function toPublicFailure<F extends Failure | null>(failure: F, turn: string | null): F {
  if (failure?.hint === undefined || turn === null) return failure;
  return { ...failure, hint: failure.hint.replace('"throughline retry KEY"', `"throughline retry ${turn}"`) };
}

/** `hindrance`: of its conversation. */
export function toPublicTurn(stored: Turn, hindrance: Hindrance = NO_HINDRANCE): PublicTurn {
  const { id, conversation, n, requestId, state, agent, prompt, options, attempt, sessionId, retryOf, imported, sent } =
    stored;
  const { replaces, replacedBy, cancelRequested, failure, recovered, delivered, usage, createdAt, startedAt, endedAt } =
    stored;
  return {
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
    sent: sent && toPublicSent(sent),
    cancelRequested,
    ...(hasEnded(state) ? NO_HINDRANCE : hindrance),
    failure: toPublicFailure(failure, id),
    ...(recovered && { recovered }),
    ...(delivered && { delivered }),
    usage,
    createdAt,
    startedAt,
    endedAt,
  };
}

/** Leaves out our ids of session and prompt, the process, the position in the agent's storage, and the hash of what was delivered. */
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
  const { state, optionId, answeredBy, answeredFrom, reason, askedAt, endedAt } = stored;
  return {
    ...{ id, conversationId: conversation, turnId: turn, attempt, title, toolCall, options },
    ...{ state, optionId, answeredBy, answeredFrom, reason, askedAt, endedAt },
  };
}
