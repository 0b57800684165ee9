import type { Conversation } from '../../core/conversation.ts';
import { noSuch } from '../../core/errors.ts';
import type { ConversationEvent } from '../../core/event.ts';
import { inPages } from '../../core/input/pages.ts';
import { toPublicConversation } from '../../core/public/conversation.ts';
import { type PublicSession, toPublicReceipt, toPublicSessions } from '../../core/public/session.ts';
import { type PublicTurn, toPublicTurn } from '../../core/public/turn.ts';
import type { Session } from '../../core/restore/session.ts';
import { denialsIn } from '../../core/turn/permission.ts';
import { replyText, type TurnRecord } from '../../core/turn/record.ts';
import type { Stranded } from '../../core/turn/standing.ts';
import type { Turn } from '../../core/turn/turn.ts';
import type { Bounded, ConversationView, Engine, SearchHit } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import { SizeLimit } from './size-limit.ts';

const PAGE = 500;

/** A whole conversation: every turn with its answer, the sessions, the receipts. */
export async function showConversation(
  store: Store,
  conversation: Conversation,
  { most, stranded }: Bounded & { readonly stranded: Stranded | null },
): Promise<ConversationView> {
  const limit = new SizeLimit(most);
  const { owner, id } = conversation;
  const turns: PublicTurn[] = [];
  for await (const turn of inPages<Turn>((last) => store.turns(owner, id, { after: last?.n ?? 0, limit: PAGE }))) {
    turns.push(limit.checked(toPublicTurn(turn, stranded)));
  }
  const replies = new Map<number, string>();
  for await (const record of allRecords(store, conversation)) {
    replies.set(record.n, limit.checked(replyText(record.parts)));
  }
  return {
    conversation: toPublicConversation(conversation, stranded),
    turns: turns.map((turn) => ({ ...turn, reply: replies.get(turn.n) ?? '' })),
    sessions: limit.checked(sessionsAsOpened(await store.sessions(owner, id))),
    receipts: limit.checked((await store.receipts(owner, id)).map(toPublicReceipt)),
  };
}

/** The answer of a turn, the receipt of its last attempt, and the questions that were denied. */
export async function answerOf(store: Store, owner: string, turn: Turn): ReturnType<Engine['answerOf']> {
  const { id, conversation, n } = turn;
  const [record] = await store.recordsBefore(owner, conversation, { upTo: n, limit: 1 });
  const receipt = (await store.receipts(owner, conversation, { turn: n })).at(-1);
  if (receipt === undefined) throw noSuch('receipt of turn', id);
  const reply = record?.n === n ? replyText(record.parts) : '';
  const denied = denialsIn(await store.permissions(owner, { turn: id }));
  return { turn: toPublicTurn(turn), reply, receipt: toPublicReceipt(receipt), denied };
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
