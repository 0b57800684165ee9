import type { ConversationEvent } from '../../core/event.ts';
import type { Session } from '../../core/session.ts';
import type { Sent, Turn } from '../../core/turn.ts';

/*
 * Our references of sessions, and what adapters note about them, stay inside: whoever reads our JSON knows a session by the
 * agent's own id of it, which a turn has as `sessionId`.
 */
export function shownTurn<T extends Turn>(turn: T) {
  return { ...turn, sent: turn.sent === null ? null : shownSent(turn.sent) };
}

export function shownEvent(event: ConversationEvent): object {
  if (event.kind !== 'turn.sent') return event;
  return { ...event, payload: { ...event.payload, sent: shownSent(event.payload.sent) } };
}

/** `parent` is the agent's id of the session that it came from. */
export function shownSession({ ref: _, memo: __, ...session }: Session, parent: string | null) {
  return { ...session, parent };
}

function shownSent({ session: _, ...sent }: Sent) {
  return sent;
}
