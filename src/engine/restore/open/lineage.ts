import { randomUUID } from 'node:crypto';
import type { Session, SessionState } from '../../../core/session.ts';
import type { OpenSession, RestoreRequest, StepFailure } from '../restore.ts';

/** What is known of a session that the lineage has. */
export function inLineage(row: Session): Omit<OpenSession, 'session'> {
  const { ref, origin, parent, watermark, dropped, position, mirrored } = row;
  return { ref, origin, parent, watermark, dropped, position, mirrored };
}

/** The session that a new one follows in the lineage: the last of the conversation, whoever's it was. */
export async function previousSession({ hold }: RestoreRequest): Promise<string | null> {
  const { owner, id } = hold.conversation;
  const [newest] = await hold.parts.store.sessions(owner, id, { limit: 1 });
  return newest?.ref ?? null;
}

/** Written before its agent hears of the id. Our reference of it. */
export async function recordAssigned(
  id: string,
  parent: string | null,
  origin: 'new' | 'rehydrated',
  { hold, agent }: RestoreRequest,
): Promise<string> {
  const ref = randomUUID();
  const unused = { watermark: 0, dropped: 0, state: 'dormant', position: null, process: null } as const;
  const storage = await hold.storage(agent);
  const session = { ref, id, agent: agent.name, storage, parent, origin, ...unused };
  await hold.lease.write({ write: 'open-session', session, turn: null });
  return ref;
}

/** An assigned id whose session never came to be. */
export async function hopeless(ref: string, { failure }: StepFailure, { hold }: RestoreRequest): Promise<void> {
  await hold.lease.write({ write: 'change-session', ref, change: { state: 'lost' }, reason: failure });
}

/** It is not used again, and its process, if it has one here, is ended. */
export async function drop(
  row: Session,
  state: SessionState,
  reason: string,
  request: RestoreRequest,
): Promise<StepFailure> {
  const { hold, agent } = request;
  const live = hold.live.get(agent.name);
  if (live?.ref === row.ref) {
    hold.live.delete(agent.name);
    await live.session.close();
  }
  await hold.lease.write({ write: 'change-session', ref: row.ref, change: { state, process: null }, reason });
  return { failure: reason, dropped: row.ref };
}
