import type { AgentTraits } from '../core/traits.ts';
import type { Sent, Turn } from '../core/turn.ts';
import type { Hold } from './hold.ts';
import type { RestoreRequest } from './restore.ts';
import { eventsOfTurn } from './views.ts';

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
