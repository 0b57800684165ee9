import { ThroughlineError } from '../../core/errors.ts';
import type { Session } from '../../core/session.ts';
import { hasEnded, type Turn } from '../../core/turn.ts';
import type { Held, TrackerLocks, TrackerParts } from './locks.ts';
import { notTracked, type TrackedRequests } from './tracked-requests.ts';
import { endWrites, type Outcome, openSessionWrites, sendWrites } from './tracked-turn.ts';

/** What one tracker works with. */
export interface Desk {
  readonly parts: TrackerParts;
  readonly owner: string;
  /** The agent of its turns and sessions, as the store knows it. */
  readonly agent: string;
  readonly locks: TrackerLocks;
  readonly requests: TrackedRequests;
}

export interface OpenRequest {
  readonly turn: Turn;
  readonly held: Held;
}

/** An open request and our lock on it; taken over when its program is gone, for the caller knows what became of it. */
export async function holdRequest(desk: Desk, requestId: string): Promise<OpenRequest> {
  const found = await desk.requests.find(requestId);
  if (found === null) throw notTracked(requestId);
  const { turn } = found;
  if (hasEnded(turn.state))
    throw new ThroughlineError('conflict', `The request "${requestId}" has already ended: ${turn.state}.`);
  return { turn, held: desk.locks.held(turn.conversation) ?? (await takeOver(desk, turn)) };
}

async function takeOver({ locks }: Desk, turn: Turn): Promise<Held> {
  const taken = await locks.take(turn.conversation);
  if (taken?.left?.id === turn.id) return taken.held;
  if (taken !== null) await locks.release(taken.held);
  throw new ThroughlineError('conflict', `The request "${turn.requestId}" is tracked by another process.`);
}

/** The request has this session from here on, and so has its agent. */
export async function giveSession(desk: Desk, { turn, held }: OpenRequest, id: string): Promise<void> {
  const { requests, locks, agent, parts } = desk;
  const [newest = null] = await requests.sessions(turn.conversation, 1);
  const known = await requests.session(turn.conversation, id);
  const { ref, writes } = openSessionWrites(turn, id, agent, { newest, known });
  await locks.commit(held, [...writes, ...sendWrites(turn, ref, parts.clock.now())]);
}

/** Ends the request. The lock stays. */
export async function endRequest(desk: Desk, { turn, held }: OpenRequest, outcome: Outcome): Promise<void> {
  await desk.locks.commit(held, endWrites(turn, await sessionOf(desk, turn), outcome, desk.parts.clock.now()));
}

function sessionOf({ requests }: Desk, { conversation, sessionId }: Turn): Promise<Session | null> {
  return sessionId === null ? Promise.resolve(null) : requests.session(conversation, sessionId);
}
