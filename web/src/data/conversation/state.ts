import type { Conversation, ConversationEvent, Permission, Session, Turn, TurnOutline } from 'throughline/client';
import { modelRetryIn } from '../../../../src/core/turn/update.ts';
import {
  afterEvent,
  isOpen,
  type LiveParts,
  NOTHING_SHARED,
  type Shared,
  sharedAfter,
  type TurnItem,
} from './model.ts';

/** One conversation as loaded by the page. Turns are loaded in pages: the end first, the others when somebody scrolls there. */
export interface ConversationState extends Shared {
  readonly phase: 'loading' | 'ready' | 'failed';
  readonly error: unknown;
  readonly conversation: Conversation | null;
  /** The number of its last known event. */
  readonly lastSeq: number;
  /** The number of its last turn; 0: it has none. Turns are numbered from 1 without gaps. */
  readonly last: number;
  /** By number. Missing: not loaded. */
  readonly turns: ReadonlyMap<number, TurnItem>;
  readonly sessions: readonly Session[];
  /** Every turn without its texts; null: not read yet. Open turns in it may be behind `turns`. */
  readonly outline: readonly TurnOutline[] | null;
  /** Why the outline could not be read; null: it could. */
  readonly outlineError: unknown;
  /** The questions that wait for an answer, oldest first. */
  readonly permissions: readonly Permission[];
  /** Its session was killed on this page, and no turn has started since. */
  readonly isKilled: boolean;
  /** How often a prompt was sent from this page. Each time the timeline scrolls to the answer. */
  readonly sends: number;
}

export const NOTHING: ConversationState = {
  phase: 'loading',
  error: null,
  conversation: null,
  lastSeq: 0,
  last: 0,
  turns: new Map(),
  sessions: [],
  outline: null,
  outlineError: null,
  permissions: [],
  ...NOTHING_SHARED,
  isKilled: false,
  sends: 0,
};

/** What has to be read again. */
export interface Look {
  readonly turns: Set<string>;
  outline: boolean;
  sessions: boolean;
  permissions: boolean;
  conversation: boolean;
}

/**
 * Applies events to the state. `partsOf`: the parts of an open turn. Returns the change, what has to be read, and in `early` the events
 * of turns that are not loaded yet.
 */
export function afterEvents(
  before: ConversationState,
  events: readonly ConversationEvent[],
  partsOf: (turnId: string) => LiveParts,
): { readonly change: Partial<ConversationState>; readonly look: Look; readonly early: ConversationEvent[] } {
  const turns = new Map(before.turns);
  const byId = new Map([...turns.values()].filter(isOpen).map((item) => [item.turn.id, item.turn.n]));
  const look: Look = { turns: new Set(), outline: false, sessions: false, permissions: false, conversation: false };
  const grown = new Set<string>();
  const early: ConversationEvent[] = [];
  let shared: Shared = before;
  let { isKilled } = before;
  for (const event of events) {
    const { turnId, kind } = event;
    if (kind === 'turn.queued' || kind === 'turn.ended' || kind === 'turn.sent') look.turns.add(turnId ?? '');
    if (kind.startsWith('session.') || kind === 'turn.ended') look.sessions = true;
    if (kind === 'turn.ended' || kind === 'conversation.imported') look.outline = true;
    if (kind.startsWith('permission.')) look.permissions = true;
    if (kind.startsWith('conversation.') || kind === 'turn.ended') look.conversation = true;
    // A process continues the stranded conversation.
    if (kind !== 'turn.update' && (before.conversation?.stranded ?? null) !== null) look.conversation = true;
    if (kind === 'turn.started') isKilled = false;
    shared = sharedAfter(shared, event, placesIn(turns, before.last));
    if (turnId === null) continue;
    if (partsOf(turnId).add(event)) grown.add(turnId);
    const n = byId.get(turnId);
    const item = n === undefined ? undefined : turns.get(n);
    if (item !== undefined) turns.set(item.turn.n, afterEvent(item, event));
    else if (kind !== 'turn.update' || modelRetryIn(event.payload.update) !== null) early.push(event);
  }
  for (const id of grown) {
    const item = turns.get(byId.get(id) ?? -1);
    if (item !== undefined) turns.set(item.turn.n, { ...item, parts: partsOf(id).parts });
  }
  const { announced, receipts, warming, endings } = shared;
  const lastSeq = events.at(-1)?.seq ?? before.lastSeq;
  return { change: { lastSeq, turns, announced, receipts, warming, endings, isKilled }, look, early };
}

/**
 * The last turn of the history: it was sent and has ended, or it was imported or copied. And the first open turn after it, or the number
 * of the next one.
 */
function placesIn(turns: ReadonlyMap<number, TurnItem>, last: number): { head: number; next: number } {
  let next = last + 1;
  for (let n = last; n > 0; n -= 1) {
    const item = turns.get(n);
    if (item !== undefined && isOpen(item)) next = n;
    if (item === undefined || (!isOpen(item) && isHistory(item.turn))) return { head: n, next };
  }
  return { head: 0, next };
}

/** Imported and copied turns were sent by somebody else, or in the original. */
const isHistory = ({ sent, imported }: Turn) => sent !== null || imported;
