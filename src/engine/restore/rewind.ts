import { isTooMuchAgain } from '../../core/continuity.ts';
import type { Session } from '../../core/session.ts';
import type { AgentTraits } from '../../core/traits.ts';
import type { Sent, Turn } from '../../core/turn.ts';
import { eventsOfTurn } from '../reading/views.ts';
import type { Hold } from '../worker/hold.ts';
import type { RestoreRequest } from './restore.ts';

type Going = RestoreRequest['rewind'];

/** Back to before a prompt: the model must not be told it twice because the first time came to nothing. */
export function rewindOf(ref: string | null, { position, prompt }: Sent): Going {
  return ref === null || position === null || prompt === null ? null : { ref, position, drops: prompt };
}

/**
 * The same for an attempt that an earlier holder of the lease has made, and after which it died. A turn that is begun and was sent
 * before was given up in good order, or it would have come back as unfinished.
 */
export async function rewindOfEarlier(hold: Hold, turn: Turn, traits: AgentTraits): Promise<Going> {
  if (!traits.rewind || turn.attempt === 1) return null;
  const { store } = hold.parts;
  const { owner, id } = hold.conversation;
  let last: Sent | null = null;
  for await (const event of eventsOfTurn(store, owner, turn.id)) {
    if (event.kind === 'turn.sent') last = event.payload.sent;
  }
  if (last === null) return null;
  const sessions = await store.sessions(owner, id, { agent: turn.agent });
  const session = sessions.find(({ ref }) => ref === last.session);
  // One that stands where it stood has not seen the prompt.
  return session === undefined || session.position === last.position ? null : rewindOf(session.ref, last);
}

/**
 * The same for a new turn, when the one before it has failed and done nothing: where many turns in a row fail, each goes back to
 * the same place, and the context does not grow with every one of them. A session without a watermark has nothing to go back to
 * that it would not be told again.
 */
export async function rewindOfFailed(hold: Hold, agent: string, traits: AgentTraits): Promise<Going> {
  if (!traits.rewind) return null;
  const { store } = hold.parts;
  const { owner, id, head } = hold.conversation;
  const [session] = await store.sessions(owner, id, { agent, limit: 1 });
  if (session === undefined || session.watermark === 0) return null;
  if (!isTooMuchAgain(await toldInVain(hold, session))) return null;
  const [turn] = await store.turns(owner, id, { after: head - 1, limit: 1 });
  const [record] = await store.recordsBefore(owner, id, { upTo: head, limit: 1 });
  if (turn?.state !== 'failed' || turn.sent?.session !== session.ref || turn.sent.position === session.position)
    return null;
  return record?.parts.some(({ type }) => type === 'tool') ? null : rewindOf(session.ref, turn.sent);
}

/**
 * How many turns after its watermark an unsettled session has been told already: all up to the last one that was sent in it. What
 * other agents have answered since is new to it. One in which no turn has ended was rebuilt for this very turn, with all of them.
 */
export async function toldInVain(hold: Hold, session: Session): Promise<number> {
  if (session.state !== 'unsettled') return 0;
  const { store } = hold.parts;
  const { owner, id, head } = hold.conversation;
  const lacking = await store.countRecordsAfter(owner, id, session.watermark);
  if (!isTooMuchAgain(lacking)) return lacking;
  const newest = await store.recordsBefore(owner, id, { upTo: head, limit: MOST_LOOKED_AT });
  const last = newest.find(({ sessionId }) => sessionId === session.id);
  return last === undefined ? lacking : lacking - (await store.countRecordsAfter(owner, id, last.n));
}

/** Whoever was away for longer is told so much that is new that what is repeated hardly matters, and is taken to know all of it. */
const MOST_LOOKED_AT = 20;
