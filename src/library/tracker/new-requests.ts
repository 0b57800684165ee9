import { randomUUIDv7 } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Conversation } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { PublicLock } from '../../core/public/conversation.ts';
import { hasEnded, type Turn } from '../../core/turn.ts';
import type { Held } from './locks.ts';
import { type Desk, endRequest, giveSession } from './open-requests.ts';
import { type Outcome, refusedWrites } from './tracked-turn.ts';

/** A request as it was asked for: the same again has the same of all three. */
export interface Asked {
  readonly requestId: string;
  readonly agentId: string | null;
  readonly sessionId: string | null;
}

/** Takes the lock of the agent's conversation and records the request. What is refused leaves no request behind. */
export async function acceptRequest(desk: Desk, { requestId, agentId, sessionId }: Asked): Promise<void> {
  const { requests, locks, parts, owner, agent } = desk;
  if (sessionId !== null) {
    const known = agentId === null ? null : await requests.conversation(agentId);
    await requests.refuseForeign(sessionId, known?.id ?? null);
  }
  const conversation = await conversationOf(desk, agentId);
  const held = await lock(desk, conversation);
  try {
    const accepted = await parts.store.enqueue(owner, {
      id: randomUUIDv7(),
      conversation: conversation.id,
      requestId,
      agent,
      defaultAgent: null,
      prompt: [],
      options: sessionId === null ? {} : { session: sessionId },
      retryOf: null,
    });
    const turn = await locks.begin(held);
    if (turn?.id !== accepted.turn.id) throw new ThroughlineError('conflict', 'Another request came first.');
    if (sessionId !== null) await giveSession(desk, { turn, held }, sessionId);
  } catch (error) {
    // What cannot be ended now, for want of storage, is interrupted by whoever asks next.
    await refuse(desk, conversation, requestId, held).catch(() => {});
    throw error;
  }
}

async function conversationOf({ parts, owner, agent }: Desk, agentId: string | null): Promise<Conversation> {
  const id = randomUUIDv7();
  const { conversation } = await parts.store.ensureConversation(owner, {
    id,
    key: agentId,
    title: null,
    agent,
    driver: 'tracker',
    sandbox: id,
    cwd: null,
    place: parts.sandboxes.place,
    restore: {},
  });
  if (conversation.driver === 'tracker') return conversation;
  throw new ThroughlineError('refused', `The conversation "${agentId}" is run by Throughline itself.`, {
    hint: 'Send to it instead of tracking it, or use another agent id.',
  });
}

/** How long, and how often, a lock is looked at again whose holder has no request. */
const LOOK_MS = 1_000;
const LOOK_AGAIN_MS = 10;

async function lock(desk: Desk, conversation: Conversation): Promise<Held> {
  const { locks, requests } = desk;
  for (let waited = 0; ; waited += LOOK_AGAIN_MS) {
    const taken = await locks.take(conversation.id);
    if (taken !== null) return interruptAll(desk, taken.held, taken.left);
    const open = await requests.open(conversation);
    // A lock without a request: its holder is about to record it, or has just ended it.
    if (open !== null || waited >= LOOK_MS) throw busy(conversation, open, await requests.lock(conversation.id));
    await delay(LOOK_AGAIN_MS);
  }
}

/** Requests whose program is gone: nobody knows what became of them. */
async function interruptAll(desk: Desk, held: Held, left: Turn | null): Promise<Held> {
  const { locks } = desk;
  const message = 'The program that tracked this request ended before it did.';
  const outcome: Outcome = { outcome: 'interrupted', failure: { code: 'interrupted', message } };
  try {
    if (left !== null) await endRequest(desk, { turn: left, held }, outcome);
    for (let turn = await locks.begin(held); turn !== null; turn = await locks.begin(held))
      await endRequest(desk, { turn, held }, outcome);
    return held;
  } catch (error) {
    await locks.release(held).catch(() => {});
    throw error;
  }
}

function busy({ key, id }: Conversation, open: Turn | null, lock: PublicLock | null): ThroughlineError {
  const by = open?.requestId ? `the request "${open.requestId}"` : 'another request';
  const until = lock ? ` (${lock.holder}, ${Math.ceil(lock.expiresIn / 1000)} s left unless renewed)` : '';
  return new ThroughlineError('conflict', `"${key ?? id}" is busy with ${by}${until}.`, {
    hint: 'Wait for its end; one conversation has one writer at a time.',
  });
}

async function refuse(desk: Desk, { id }: Conversation, requestId: string, held: Held): Promise<void> {
  const { parts, locks, owner } = desk;
  const turn = await parts.store.findRequest(owner, requestId);
  // The same id may be that of a request elsewhere, which came at the same time.
  if (turn?.conversation === id && !hasEnded(turn.state)) await locks.commit(held, refusedWrites(turn));
  await locks.release(held);
}
