import type { Conversation } from '../../core/conversation.ts';
import { noSuch } from '../../core/errors.ts';
import type { ConversationEvent } from '../../core/event.ts';
import { inPages } from '../../core/pages.ts';
import { replyText, type TurnRecord } from '../../core/record.ts';
import type { Session } from '../../core/session.ts';
import type { Turn } from '../../core/turn.ts';
import type { Bounded, ConversationView, Engine, SessionView } from '../../ports/engine.ts';
import type { Store } from '../../ports/store.ts';
import { Room } from './room.ts';

const PAGE = 500;

/** A whole conversation: every turn with its answer, the lineage, the receipts. */
export async function showConversation(
  store: Store,
  conversation: Conversation,
  { most }: Bounded = {},
): Promise<ConversationView> {
  const room = new Room(most);
  const { owner, id } = conversation;
  const turns: Turn[] = [];
  for await (const turn of inPages<Turn>((last) => store.turns(owner, id, { after: last?.n ?? 0, limit: PAGE }))) {
    room.take(turn);
    turns.push(turn);
  }
  const replies = new Map<number, string>();
  for await (const record of allRecords(store, conversation)) {
    const reply = replyText(record.parts);
    room.take(reply);
    replies.set(record.n, reply);
  }
  return {
    conversation,
    turns: turns.map((turn) => ({ ...turn, reply: replies.get(turn.n) ?? '' })),
    sessions: room.taking(sessionViews(await store.sessions(owner, id))),
    receipts: room.taking(await store.receipts(owner, id)),
  };
}

/** What a turn was answered with, and the receipt of its last attempt. */
export async function answerOf(store: Store, owner: string, turn: Turn): ReturnType<Engine['answerOf']> {
  const { id, conversation, n } = turn;
  const [record] = await store.recordsBefore(owner, conversation, { upTo: n, limit: 1 });
  const receipt = (await store.receipts(owner, conversation, { turn: n })).at(-1);
  if (receipt === undefined) throw noSuch('receipt of turn', id);
  return { turn, reply: record?.n === n ? replyText(record.parts) : '', receipt };
}

/** Every record, oldest first. */
export function allRecords(store: Store, { owner, id }: Conversation): AsyncGenerator<TurnRecord> {
  return inPages((last) => store.recordsAfter(owner, id, { after: last?.n ?? 0, limit: PAGE }));
}

/** Every event of a turn. */
export function eventsOfTurn(store: Store, owner: string, turn: string): AsyncGenerator<ConversationEvent> {
  return inPages((last) => store.turnEvents(owner, turn, { after: last?.seq ?? 0, limit: PAGE }));
}

/** In the order in which they were opened, with the agent's ids instead of our references. */
export function sessionViews(sessions: readonly Session[]): SessionView[] {
  const ids = new Map(sessions.map((session) => [session.ref, session.id]));
  return sessions
    .toSorted((a, b) => a.openedAt - b.openedAt || (a.parent === b.ref ? 1 : b.parent === a.ref ? -1 : 0))
    .map(({ ref: _, memo: __, parent, ...rest }) => ({
      ...rest,
      parent: parent === null ? null : (ids.get(parent) ?? null),
    }));
}
