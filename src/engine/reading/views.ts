import type { Conversation } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { ConversationEvent } from '../../core/event.ts';
import { type CheckedRange, checkWait } from '../../core/input/arguments.ts';
import { sizeOf } from '../../core/input/size.ts';
import { toPublicConversation } from '../../core/public/conversation.ts';
import { type PublicSession, toPublicReceipt, toPublicSessions } from '../../core/public/session.ts';
import { type PublicTold, type PublicTurn, toPublicTools, toPublicTurn } from '../../core/public/turn.ts';
import { isUsable, type Session } from '../../core/restore/session.ts';
import { denialsIn } from '../../core/turn/permission.ts';
import { replyText, type TurnRecord } from '../../core/turn/record.ts';
import type { Hindrance } from '../../core/turn/standing.ts';
import { hasEnded, type Turn } from '../../core/turn/turn.ts';
import { inPages } from '../../flow/pages.ts';
import type {
  AnswerOptions,
  Bounded,
  ConversationView,
  SearchHit,
  ToldOptions,
  TurnAnswer,
  TurnView,
} from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import type { Changes } from './changes.ts';
import { SizeLimit } from './size-limit.ts';

const PAGE = 500;

/** A whole conversation: every turn with its answer, the sessions, the receipts. */
export async function showConversation(
  store: Store,
  conversation: Conversation,
  { most, hindrance }: Bounded & { readonly hindrance: Hindrance },
): Promise<ConversationView> {
  const limit = new SizeLimit(most);
  const { owner, id } = conversation;
  const turns: PublicTurn[] = [];
  for await (const turn of inPages<Turn>((last) => store.turns(owner, id, { after: last?.n ?? 0, limit: PAGE }))) {
    turns.push(limit.checked(toPublicTurn(turn, hindrance)));
  }
  const replies = new Map<number, string>();
  for await (const record of allRecords(store, conversation)) {
    replies.set(record.n, limit.checked(replyText(record.parts)));
  }
  return {
    conversation: toPublicConversation(conversation, hindrance),
    turns: turns.map((turn) => ({ ...turn, reply: replies.get(turn.n) ?? '' })),
    sessions: limit.checked(sessionsAsOpened(await store.sessions(owner, id))),
    receipts: limit.checked((await store.receipts(owner, id)).map(toPublicReceipt)),
  };
}

type OfConversation = Pick<Conversation, 'owner' | 'id'> & { readonly hindrance: Hindrance };

/** A page of turns ends with the turn that reaches this size. */
const LARGEST_PAGE = 8 * 1024 * 1024;

/** A page of turns with their answers, which ends early when they are large. Read in parts, so that others are served in between. */
export async function turnsWithReplies(
  store: Store,
  conversation: OfConversation,
  range: CheckedRange,
): Promise<TurnView[]> {
  const turns: TurnView[] = [];
  for (let size = 0; turns.length < range.limit && size < LARGEST_PAGE; ) {
    const limit = Math.min(PAGE, range.limit - turns.length);
    const part =
      'after' in range
        ? await partAfter(store, conversation, { after: turns.at(-1)?.n ?? range.after, limit })
        : await partBefore(store, conversation, { before: turns[0]?.n ?? range.before, limit });
    if (part.length === 0) break;
    // Prompts and replies are read in pages of their own, so a part may be larger.
    for (const turn of 'after' in range ? part : part.toReversed()) {
      if (size >= LARGEST_PAGE) break;
      if ('after' in range) turns.push(turn);
      else turns.unshift(turn);
      size += sizeOf(turn);
    }
  }
  return turns;
}

/** Ends with the last turn whose record was read: a page of records is short when they are large. */
async function partAfter(store: Store, conversation: OfConversation, page: { after: number; limit: number }) {
  const { owner, id } = conversation;
  const turns = await store.turns(owner, id, page);
  const records = await store.recordsAfter(owner, id, page);
  const last = records.at(-1)?.n ?? null;
  const isCut = last !== null && (await store.countRecordsAfter(owner, id, last)) > 0;
  return withReplies(conversation, isCut ? turns.filter(({ n }) => n <= last) : turns, records);
}

/** Begins with the first turn whose record was read. */
async function partBefore(store: Store, conversation: OfConversation, page: { before: number; limit: number }) {
  const { owner, id } = conversation;
  const turns = await store.turns(owner, id, page);
  const first = turns[0]?.n ?? page.before;
  const records = await store.recordsBefore(owner, id, { upTo: page.before - 1, limit: page.limit });
  const read = records.filter(({ n }) => n >= first).length;
  const countAfter = (n: number) => store.countRecordsAfter(owner, id, n);
  const isCut = read > 0 && read < (await countAfter(first - 1)) - (await countAfter(page.before - 1));
  const from = isCut ? (records.at(-1)?.n ?? first) : first;
  return withReplies(
    conversation,
    turns.filter(({ n }) => n >= from),
    records,
  );
}

function withReplies(
  { hindrance }: OfConversation,
  turns: readonly Turn[],
  records: readonly TurnRecord[],
): TurnView[] {
  const replies = new Map(records.map(({ n, parts }) => [n, replyText(parts)]));
  return turns.map((turn) => ({
    ...toPublicTurn(turn, hindrance),
    reply: (hasEnded(turn.state) && replies.get(turn.n)) || '',
  }));
}

/** The conversations that have used a session; the one that can still use it comes first. */
export async function conversationsOfSession(
  store: Store,
  owner: string,
  session: string,
  limit: number,
): Promise<Conversation[]> {
  const used = await store.findSessions(owner, session);
  const usableFirst = used.toSorted((a, b) => Number(isUsable(b)) - Number(isUsable(a)));
  const ids = new Set(usableFirst.map(({ conversation }) => conversation));
  const found = await Promise.all([...ids].slice(0, limit).map((id) => store.findConversation(owner, id)));
  return found.filter((conversation) => conversation !== null);
}

type LookAtTurn = () => Promise<{ readonly turn: Turn; readonly hindrance: Hindrance }>;

/** Looks at a turn until it has ended, but for at most `waitMs`. */
export async function readEnded(look: LookAtTurn, changes: Changes, { waitMs, signal }: AnswerOptions): Promise<Turn> {
  const ms = checkWait(waitMs);
  let now = await look();
  if (!hasEnded(now.turn.state) && ms > 0) {
    const watch = changes.watch(now.turn.conversation);
    const over = AbortSignal.any([AbortSignal.timeout(ms), ...(signal ? [signal] : [])]);
    try {
      // Reads once more: the watch does not report a change from before it began.
      for (now = await look(); !hasEnded(now.turn.state) && !over.aborted; now = await look()) await watch.next(over);
    } finally {
      watch.close();
    }
  }
  if (hasEnded(now.turn.state)) return now.turn;
  if (signal?.reason instanceof ThroughlineError) throw signal.reason;
  if (signal?.aborted) throw new ThroughlineError('cancelled', 'The caller has stopped waiting for the turn.');
  const { stranded, delayed } = now.hindrance;
  const { message = `The turn has not ended: it is ${now.turn.state}.`, hint = WAIT } = stranded ?? delayed ?? {};
  throw new ThroughlineError('conflict', message, { hint });
}

const WAIT = 'Wait for its end (over HTTP: ?wait=SECONDS), or follow the events of its conversation.';

/** The answer of an ended turn, the receipt of its last attempt, its tools, and the questions that were denied. */
export async function answerOf(store: Store, owner: string, turn: Turn): Promise<TurnAnswer> {
  const { id, conversation, n } = turn;
  const [record] = await store.recordsBefore(owner, conversation, { upTo: n, limit: 1 });
  const receipt = (await store.receipts(owner, conversation, { turn: n })).at(-1);
  const parts = record?.n === n ? record.parts : [];
  const denied = denialsIn(await store.permissions(owner, { turn: id }));
  const shown = { turn: toPublicTurn(turn), receipt: receipt ? toPublicReceipt(receipt) : null };
  return { ...shown, reply: replyText(parts), tools: toPublicTools(parts), denied };
}

export async function search(store: Store, owner: string, query: string, limit: number): Promise<SearchHit[]> {
  const hits = await store.search(owner, query, limit);
  return hits.map(({ conversation, ...hit }) => ({ conversationId: conversation, ...hit }));
}

/** Every record, oldest first. */
export function allRecords(store: Store, { owner, id }: Conversation): AsyncGenerator<TurnRecord> {
  return inPages((last) => store.recordsAfter(owner, id, { after: last?.n ?? 0, limit: PAGE }));
}

/** Every stored event of a turn. */
export function eventsOfTurn(store: Store, owner: string, turn: string): AsyncGenerator<ConversationEvent> {
  return inPages((last) => store.turnEvents(owner, turn, { after: last?.seq ?? 0, limit: PAGE }));
}

/** In the order in which they were opened; a session comes after its parent. */
export function sessionsAsOpened(sessions: readonly Session[]): PublicSession[] {
  return toPublicSessions(
    sessions.toSorted((a, b) => a.openedAt - b.openedAt || (a.parent === b.ref ? 1 : b.parent === a.ref ? -1 : 0)),
  );
}

/** Exactly what the session of a turn was told. Throws `not_found` or `conflict` with the reason why there is nothing to show. */
export async function toldOf(
  store: Store,
  owner: string,
  turn: Turn,
  { attempt, most }: ToldOptions,
): Promise<PublicTold> {
  if (attempt !== undefined) checkAttempt(attempt);
  const kept = await store.told(owner, turn.id, attempt);
  if (kept === null) throw nothingTold(turn, attempt);
  const { sent, sessionId, parts } = kept;
  if (parts === null) {
    throw new ThroughlineError('not_found', `There is no record of what the session of turn ${turn.n} was told.`, {
      hint: 'The prompt was sent by an older version of Throughline, or by a program that uses the tracker.',
    });
  }
  new SizeLimit(most).add(parts);
  return { turnId: turn.id, attempt: sent.attempt, rung: sent.rung, sessionId, at: sent.at, parts };
}

function checkAttempt(attempt: number): void {
  if (Number.isSafeInteger(attempt) && attempt > 0) return;
  throw new ThroughlineError('invalid', 'attempt must be a whole number from 1 on.');
}

function nothingTold({ n, imported, state, attempt: last }: Turn, attempt: number | undefined): ThroughlineError {
  if (imported) {
    return new ThroughlineError('not_found', `Turn ${n} ended elsewhere: no session was told it here.`, {
      hint: 'If a later session was told of it, that is in the turn that opened the session.',
    });
  }
  if (attempt !== undefined) {
    return new ThroughlineError('not_found', `No attempt ${attempt} at turn ${n} was sent; the last one is ${last}.`);
  }
  return hasEnded(state)
    ? new ThroughlineError('not_found', `Turn ${n} ended before anything was sent.`)
    : new ThroughlineError('conflict', `Nothing was sent yet for turn ${n}: it is ${state}.`, {
        hint: 'Try again later.',
      });
}
