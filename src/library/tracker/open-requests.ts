import { ThroughlineError } from '../../core/errors.ts';
import { notTracked } from '../../core/input/tracked.ts';
import { hasEnded, type Turn } from '../../core/turn/turn.ts';
import type { HeldLock, TrackerLocks, TrackerParts } from './locks.ts';
import type { TrackedRequests } from './tracked-requests.ts';
import { endWrites, type Outcome, openSessionWrites, sendWrites } from './tracked-turn.ts';

/** What the functions of one tracker share. */
export interface TrackerContext {
  readonly parts: TrackerParts;
  readonly owner: string;
  /** The name of the agent of its turns and sessions in the store. */
  readonly agent: string;
  readonly locks: TrackerLocks;
  readonly requests: TrackedRequests;
}

export interface OpenRequest {
  readonly turn: Turn;
  readonly held: HeldLock;
}

/** An open request and our lock on it. Takes the lock over if its program is gone: the caller knows how the request went. */
export async function holdRequest(context: TrackerContext, requestId: string): Promise<OpenRequest> {
  const found = await context.requests.find(requestId);
  if (found === null) throw notTracked(requestId);
  const { turn } = found;
  if (hasEnded(turn.state))
    throw new ThroughlineError('conflict', `The request "${requestId}" has already ended: ${turn.state}.`);
  return { turn, held: (await context.locks.held(turn.conversation)) ?? (await takeOver(context, turn)) };
}

async function takeOver({ locks }: TrackerContext, turn: Turn): Promise<HeldLock> {
  const taken = await locks.take(turn.conversation);
  if (taken?.left?.id === turn.id) return taken.held;
  if (taken !== null) await locks.release(taken.held);
  throw new ThroughlineError('conflict', `The request "${turn.requestId}" is tracked by another process.`, {
    hint: 'Its lock is free when that process ends, or when it no longer renews it.',
  });
}

/** Sets the session of the request, and so of its agent. */
export async function giveSession(context: TrackerContext, { turn, held }: OpenRequest, id: string): Promise<void> {
  const { requests, locks, agent, parts } = context;
  const [newest = null] = await requests.sessions(turn.conversation, 1);
  const known = await requests.session(turn.conversation, id);
  const { ref, writes } = openSessionWrites(turn, id, agent, { newest, known });
  await locks.commit(held, [...writes, ...sendWrites(turn, ref, known !== null, parts.clock.now())]);
}

/** Ends the request and keeps the lock. */
export async function endRequest(
  context: TrackerContext,
  { turn, held }: OpenRequest,
  outcome: Outcome,
): Promise<void> {
  const { conversation, sessionId } = turn;
  const session = sessionId === null ? null : await context.requests.session(conversation, sessionId);
  await context.locks.commit(held, endWrites(turn, session, outcome, context.parts.clock.now()));
}
