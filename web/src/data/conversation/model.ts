import type { ConversationEvent, Receipt, RecordPart, Restore, Turn } from 'throughline/client';
import type { RestoreProgress, Tried } from '../../../../src/core/restore/receipt.ts';
import { PartsBuilder } from '../../../../src/core/turn/record.ts';
import { hasEnded } from '../../../../src/core/turn/turn.ts';
import type { Update } from '../../../../src/core/turn/update.ts';
import { type ModelRetry, modelRetryIn, showsAnswer } from '../../../../src/core/turn/update.ts';
import { type Announced, afterUpdate, NOTHING_ANNOUNCED } from './announced.ts';

/** A turn as the timeline shows it. */
export interface TurnItem {
  readonly turn: Turn;
  /** Text, thoughts and tools in the order in which they came. */
  readonly parts: readonly RecordPart[];
  /** The progress of its restore; null: none is running. */
  readonly restoring: Restoring | null;
  /** What delays it now; null: nothing. */
  readonly notice: Notice | null;
}

export interface Restoring extends RestoreProgress {
  readonly tried: readonly Tried[];
}

export type Notice =
  | {
      readonly kind: 'stalled';
      readonly tool: string | null;
      readonly silentMs: number;
      readonly endsInMs: number | null;
    }
  | { readonly kind: 'retrying'; readonly message: string }
  | { readonly kind: 'unanswered'; readonly retry: ModelRetry }
  | { readonly kind: 'locked'; readonly ms: number };

export function itemOf(turn: Turn, parts: readonly RecordPart[] = []): TurnItem {
  return { turn, parts, restoring: null, notice: null };
}

/** The parts of an open turn so far. Each event is added once, whether it came with a page or live. */
export class LiveParts {
  #builder = new PartsBuilder();
  #lastSeq = 0;

  /** Returns whether the parts have changed. */
  add(event: ConversationEvent): boolean {
    if (event.seq <= this.#lastSeq) return false;
    this.#lastSeq = event.seq;
    // A new attempt starts over: what the previous one said is not part of the answer.
    if (event.kind === 'turn.started') this.#builder = new PartsBuilder();
    if (event.kind !== 'turn.update') return event.kind === 'turn.started';
    this.#builder.add(event.payload.update, event.at);
    return true;
  }

  get parts(): readonly RecordPart[] {
    return this.#builder.parts();
  }
}

/** The item after an event of its turn. Its parts come from `LiveParts`. After important events the turn itself is read again. */
export function afterEvent(item: TurnItem, event: ConversationEvent): TurnItem {
  const { turn } = item;
  switch (event.kind) {
    case 'turn.started':
      return { ...item, turn: { ...turn, state: 'running', attempt: event.payload.attempt }, notice: null };
    case 'turn.requeued':
      return { ...item, turn: { ...turn, state: 'queued' }, restoring: null };
    case 'turn.sent':
      return { ...item, turn: { ...turn, state: 'running', sent: event.payload.sent }, restoring: null, notice: null };
    case 'turn.update':
      return withNotice(item, noticeAfter(item.notice, event.payload.update));
    case 'turn.retrying':
      return { ...item, notice: { kind: 'retrying', message: event.payload.failure.message } };
    case 'turn.stalled':
      return { ...item, notice: { kind: 'stalled', ...event.payload } };
    case 'permission.asked':
      return { ...item, turn: { ...turn, state: 'waiting' } };
    case 'permission.answered':
    case 'permission.denied':
      return { ...item, turn: { ...turn, state: 'running' } };
    case 'turn.cancel_requested':
      return { ...item, turn: { ...turn, cancelRequested: true } };
    case 'turn.ended': {
      const { outcome, failure, usage } = event.payload;
      const ended = { ...turn, state: outcome, failure, usage, endedAt: event.at };
      return { ...item, turn: ended, restoring: null, notice: null };
    }
    default:
      return afterRestoring(item, event);
  }
}

function withNotice(item: TurnItem, notice: Notice | null): TurnItem {
  return notice === item.notice ? item : { ...item, notice };
}

function answered(notice: Notice | null): Notice | null {
  return notice?.kind === 'unanswered' ? null : notice;
}

/** A retry stays until something of an answer has come. */
function noticeAfter(notice: Notice | null, update: Update): Notice | null {
  const retry = modelRetryIn(update);
  if (retry !== null) return { kind: 'unanswered', retry };
  return notice?.kind === 'unanswered' && !showsAnswer(update) ? notice : null;
}

/** The progress of a restore after an event, for a turn or a warm-up; null: none is running. */
function restoringAfter(restoring: Restoring | null, event: ConversationEvent): Restoring | null {
  const tried = restoring?.tried ?? [];
  switch (event.kind) {
    case 'restore.started':
      return { rung: event.payload.rung, done: 0, total: event.payload.total, tried };
    case 'restore.progress':
      return { ...event.payload, tried };
    case 'restore.tried':
      return restoring && { ...restoring, tried: [...tried, event.payload] };
    case 'restore.receipt':
      return null;
    default:
      return restoring;
  }
}

/** Receipts by turn, with one added. It replaces an earlier version of the same receipt. */
export function withReceipt(
  known: ReadonlyMap<number, readonly Receipt[]>,
  { n, receipt }: Restore,
): ReadonlyMap<number, readonly Receipt[]> {
  const isSame = (one: Receipt) =>
    receipt.turn !== null && one.turn === receipt.turn && one.attempt === receipt.attempt;
  const others = (known.get(n) ?? []).filter((one) => !isSame(one));
  return new Map(known).set(n, [...others, receipt]);
}

/** Why a session is no longer live; null: the event is about something else. */
export function endingIn(event: ConversationEvent): string | null {
  return event.kind === 'session.changed' && event.payload.state !== 'live' ? event.payload.reason : null;
}

/** The state that belongs to no single turn. */
export interface Shared {
  /** What the agent last announced. */
  readonly announced: Announced;
  /** By turn number. Those of a warm-up are under the last turn before it. */
  readonly receipts: ReadonlyMap<number, readonly Receipt[]>;
  /** The progress of the restore of a warm-up; null: none is running. */
  readonly warming: Restoring | null;
  /** Why the session before a turn had ended, by turn number. Missing: not known. */
  readonly endings: ReadonlyMap<number, string>;
}

export const NOTHING_SHARED: Shared = {
  announced: NOTHING_ANNOUNCED,
  receipts: new Map(),
  warming: null,
  endings: new Map(),
};

/**
 * `head`: the last turn that was sent and has ended; the receipt of a warm-up is stored under it. `next`: the first open turn, or the
 * number of the next one.
 */
export function sharedAfter(
  shared: Shared,
  event: ConversationEvent,
  { head, next }: { head: number; next: number },
): Shared {
  const warming = event.turnId === null ? restoringAfter(shared.warming, event) : shared.warming;
  switch (event.kind) {
    case 'turn.update':
      return { ...shared, announced: afterUpdate(shared.announced, event.payload.update) };
    case 'restore.receipt': {
      const { payload: receipt } = event;
      return { ...shared, warming, receipts: withReceipt(shared.receipts, { n: receipt.turn ?? head, receipt }) };
    }
    case 'session.changed': {
      const ending = endingIn(event);
      return ending === null ? shared : { ...shared, endings: new Map(shared.endings).set(next, ending) };
    }
    default:
      return warming === shared.warming ? shared : { ...shared, warming };
  }
}

function afterRestoring(item: TurnItem, event: ConversationEvent): TurnItem {
  switch (event.kind) {
    case 'restore.started':
    case 'restore.progress':
    case 'restore.tried':
    case 'restore.receipt':
      // The answers of a replay are not shown, but it went on after them.
      return { ...withNotice(item, answered(item.notice)), restoring: restoringAfter(item.restoring, event) };
    case 'session.locked':
      return { ...item, notice: { kind: 'locked', ms: event.payload.ms } };
    case 'session.opened':
    case 'session.changed': {
      const isNew = event.kind === 'session.opened' || item.turn.sessionId === null;
      return isNew ? { ...item, turn: { ...item.turn, sessionId: event.payload.sessionId } } : item;
    }
    default:
      return item;
  }
}

export function isOpen({ turn }: TurnItem): boolean {
  return !hasEnded(turn.state);
}
