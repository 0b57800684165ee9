import { randomUUIDv7 } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Conversation } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { PublicLock } from '../../core/public/conversation.ts';
import type { Prompt } from '../../core/turn/content.ts';
import { hasEnded, type Turn } from '../../core/turn/turn.ts';
import type { Held } from './locks.ts';
import { endRequest, giveSession, type TrackerContext } from './open-requests.ts';
import { type Outcome, refusedWrites } from './tracked-turn.ts';

/** The arguments of `trackRequest`. A repetition has the same. */
export interface Asked {
  readonly requestId: string;
  readonly agentId: string | null;
  readonly sessionId: string | null;
  /** Empty: not given. */
  readonly prompt: Prompt;
}

/** Takes the lock of the agent's conversation and records the request. A refused request is not recorded. */
export async function acceptRequest(context: TrackerContext, asked: Asked): Promise<void> {
  const { requestId, agentId, sessionId, prompt } = asked;
  const { requests, locks, parts, owner, agent } = context;
  if (sessionId !== null) {
    const known = agentId === null ? null : await requests.conversation(agentId);
    await requests.refuseForeign(sessionId, known?.id ?? null);
  }
  const conversation = await conversationOf(context, agentId);
  const held = await lock(context, conversation);
  try {
    const accepted = await parts.store.enqueue(owner, {
      id: randomUUIDv7(),
      conversation: conversation.id,
      requestId,
      agent,
      defaultAgent: null,
      prompt,
      options: sessionId === null ? {} : { session: sessionId },
      retryOf: null,
    });
    const turn = await locks.begin(held);
    if (turn?.id !== accepted.turn.id) throw new ThroughlineError('conflict', 'Another request came first.');
    if (sessionId !== null) await giveSession(context, { turn, held }, sessionId);
  } catch (error) {
    // If the storage fails now, the next request interrupts this one.
    await refuse(context, conversation, requestId, held).catch(() => {});
    throw error;
  }
}

async function conversationOf({ parts, owner, agent }: TrackerContext, agentId: string | null): Promise<Conversation> {
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
  throw new ThroughlineError('refused', `Throughline itself runs the conversation "${agentId}".`, {
    hint: 'Send to it instead of tracking it, or use another agent id.',
  });
}

/** How long, and how often, to look again at a lock whose holder has no request. */
const LOOK_MS = 1_000;
const LOOK_AGAIN_MS = 10;

async function lock(context: TrackerContext, conversation: Conversation): Promise<Held> {
  const { locks, requests } = context;
  for (let waited = 0; ; waited += LOOK_AGAIN_MS) {
    const taken = await locks.take(conversation.id);
    if (taken !== null) return interruptAll(context, taken.held, taken.left);
    const open = await requests.open(conversation);
    // A lock without a request: its holder is about to record it, or has just ended it.
    if (open !== null || waited >= LOOK_MS) throw busy(conversation, open, await requests.lock(conversation.id));
    await delay(LOOK_AGAIN_MS);
  }
}

/** Ends requests whose program is gone: nobody knows what happened to them. */
async function interruptAll(context: TrackerContext, held: Held, left: Turn | null): Promise<Held> {
  const { locks } = context;
  const message = 'The program that tracked this request ended before it did.';
  const outcome: Outcome = { outcome: 'interrupted', failure: { code: 'interrupted', message } };
  try {
    if (left !== null) await endRequest(context, { turn: left, held }, outcome);
    for (let turn = await locks.begin(held); turn !== null; turn = await locks.begin(held))
      await endRequest(context, { turn, held }, outcome);
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
    hint: 'Wait for its end: a conversation has one writer at a time.',
  });
}

async function refuse(context: TrackerContext, { id }: Conversation, requestId: string, held: Held): Promise<void> {
  const { parts, locks, owner } = context;
  const turn = await parts.store.findRequest(owner, requestId);
  // A request with the same id may have come at the same time in another conversation.
  if (turn?.conversation === id && !hasEnded(turn.state)) await locks.commit(held, refusedWrites(turn));
  await locks.release(held);
}
