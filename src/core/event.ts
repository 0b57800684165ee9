import type { Parent, TitleSource } from './conversation.ts';
import { type Failure, ThroughlineError } from './errors.ts';
import { shown } from './input/arguments.ts';
import type { LostEvents } from './loss.ts';
import type { Receipt, RestoreProgress, RestoreStarted, Tried } from './restore/receipt.ts';
import type { SessionOrigin, SessionState } from './restore/session.ts';
import type { AnsweredFrom, PermissionOption } from './turn/permission.ts';
import type { Sent, TurnEnd } from './turn/turn.ts';
import type { Update } from './turn/update.ts';
import type { Usage } from './turn/usage.ts';

/** A step of the set-up. Its output is shown with the sandbox. */
export interface SetupEvent {
  readonly name: string;
  readonly ms: number;
  /** Null: it was ended, or could not be started. */
  readonly code: number | null;
}

/** The payload of every kind of event. What an agent does is `turn.update`, an ACP value; the rest is ours. */
export interface EventPayloads {
  'conversation.created': { key: string | null; agent: string | null; cwd: string | null };
  'conversation.forked': Parent;
  'conversation.imported': { turns: number };
  'conversation.titled': { title: string; source: TitleSource };
  'conversation.arranged': { pinned: boolean; putAway: boolean };
  /** From one place to another, by their names. The files of its work stay where they were. */
  'conversation.moved': { from: string; to: string; by: string };
  /** `replaces`: the queued turn whose place it took; left out: none. `by`: who asked for it; left out: the owner. */
  'turn.queued': {
    n: number;
    agent: string;
    requestId: string | null;
    retryOf: string | null;
    replaces?: string;
    by?: string;
    preview: string;
  };
  'turn.started': { n: number; attempt: number };
  /** A worker ended before anything was sent; the turn waits for the next one. */
  'turn.requeued': { n: number; attempt: number };
  'turn.sent': { n: number; sent: Sent };
  /** An ACP `session/update` value; `acp` is the protocol version that it follows. */
  'turn.update': { acp: number; update: Update };
  /** This attempt failed in a way that may be tried again within the turn. */
  'turn.retrying': { n: number; attempt: number; failure: Failure };
  /** The agent sends nothing. `endsInMs`: when the turn is ended if nothing comes; null: never. */
  'turn.stalled': { n: number; silentMs: number; tool: string | null; endsInMs: number | null };
  'turn.cancel_requested': { n: number; by: string };
  /**
   * `recovered`: its end was not seen, but read from the agent's own storage. `replacedBy`: of a turn that a change of the queue
   * ended: the turn that took its place; null: none, it was dropped.
   */
  'turn.ended': {
    n: number;
    outcome: TurnEnd;
    failure: Failure | null;
    reply: string;
    usage: Usage;
    recovered?: true;
    replacedBy?: string | null;
  };
  'session.opened': { id: string; agent: string; origin: SessionOrigin; parent: string | null };
  'session.changed': { id: string; state: SessionState; watermark: number; reason: string | null };
  /** The agent's session is in use elsewhere; we wait and try again. */
  'session.locked': { id: string | null; waits: number; ms: number };
  'restore.started': RestoreStarted;
  'restore.progress': RestoreProgress;
  'restore.tried': Tried;
  'restore.receipt': Receipt;
  /** A process made the conversation's sandbox. Not for one that is only a folder of this conversation alone. */
  'sandbox.created': { id: string; name: string | null };
  /** Another process than the last one opened it. */
  'sandbox.reopened': { id: string; name: string | null };
  /** The steps that ran, in order. The last one may have failed. */
  'sandbox.set-up': { id: string; name: string | null; steps: readonly SetupEvent[] };
  'sandbox.rested': { id: string; name: string | null; reason: string };
  'sandbox.destroyed': { id: string; name: string | null; reason: string };
  'permission.asked': { id: string; title: string; toolCall: unknown; options: readonly PermissionOption[] };
  'permission.answered': { id: string; optionId: string; by: string; from?: AnsweredFrom };
  /** Nobody could answer, or nobody did in time. */
  'permission.denied': { id: string; reason: string };
  /** Its attempt ended before anybody answered. */
  'permission.withdrawn': { id: string; reason: string };
}

export type EventKind = keyof EventPayloads;

/** One immutable fact of a conversation. `seq` counts from 1 without gaps (R5). */
export type ConversationEvent = {
  [K in EventKind]: {
    readonly conversation: string;
    readonly seq: number;
    readonly kind: K;
    /** The id of the turn it belongs to; null: none. */
    readonly turn: string | null;
    readonly at: number;
    readonly payload: EventPayloads[K];
  };
}[EventKind];

/** An event before it has a number. */
export type EventDraft = {
  [K in EventKind]: { readonly kind: K; readonly turn: string | null; readonly payload: EventPayloads[K] };
}[EventKind];

/** The result of checking the chain of a conversation's events. */
export interface ChainCheck {
  /** The first event that does not fit the chain; null: all fit. */
  readonly broken: number | null;
  /**
   * The end of the chain: the number of its last event and the digest of everything up to there, as `12:9f86…`. Somebody who can
   * write the database can also compute a new chain; a head that is kept elsewhere reveals that.
   */
  readonly head: string;
  /** Whether the chain goes through the head that was given; left out: none was. */
  readonly kept?: boolean;
  /** Stored events that are missing, when nobody has acknowledged the loss yet; left out: none is known. */
  readonly lost?: Pick<LostEvents, 'had' | 'has'>;
}

/** Where a reader continues: after the event of this number, in this log; `log` left out: in any. */
export interface ReadAfter {
  readonly after: number;
  readonly log?: string | undefined;
}

/** Throws `log_changed` when the log has no event of that number: a reader would wait for ever, or miss events. */
export function checkEventNumber(
  { after, log }: ReadAfter,
  known: { readonly lastSeq: number; readonly logId: string },
): void {
  const hint =
    'Stored events were lost, or a backup was restored. Discard what you have, and read again from the first event ("after" 0).';
  if (log !== undefined && log !== known.logId) {
    throw new ThroughlineError('log_changed', `The log ${shown(log)} no longer exists. There is another one now.`, {
      hint,
    });
  }
  if (after > known.lastSeq) {
    const message = `There is no event ${after} to continue after: the last one is ${known.lastSeq}.`;
    throw new ThroughlineError('log_changed', message, { hint: `If the number is right: ${lowerFirst(hint)}` });
  }
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

const HEAD = /^[1-9]\d{0,14}:[0-9a-f]{64}$/;

/** Throws `invalid`. */
export function checkHead(head: unknown): string {
  if (typeof head === 'string' && HEAD.test(head)) return head;
  throw new ThroughlineError('invalid', `${shown(head)} is not the head of a chain.`, {
    hint: 'It is a number, a colon and 64 hexadecimal digits, as "throughline verify" prints it.',
  });
}

/** The number of the event that it ends with. */
export function seqOf(head: string): number {
  return Number.parseInt(head, 10);
}
