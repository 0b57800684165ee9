import { randomUUIDv7 } from 'node:crypto';
import type { Conversation } from '../../core/conversation.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { AskedRequest } from '../../core/input/tracked.ts';
import type { PublicLock } from '../../core/public/conversation.ts';
import { hasEnded, type Turn } from '../../core/turn/turn.ts';
import type { Store } from '../../ports/store.ts';
import type { HeldLock } from './locks.ts';
import { endRequest, giveSession, type TrackerContext } from './open-requests.ts';
import { type Outcome, refusedWrites } from './tracked-turn.ts';

/** Takes the lock of the agent's conversation and records the request. A refused request is not recorded. */
export async function acceptRequest(context: TrackerContext, asked: AskedRequest): Promise<void> {
  const { requestId, agentId, prompt } = asked;
  const { requests, locks, parts, owner, agent } = context;
  if (asked.sessionId !== null) {
    const known = agentId === null ? null : await requests.conversation(agentId);
    await requests.refuseForeign(asked.sessionId, known?.id ?? null);
  }
  const conversation = await conversationOf(context, agentId);
  const held = await lock(context, conversation, asked);
  try {
    const [newest] = await requests.sessions(conversation.id, 1);
    const sessionId = asked.current ? (newest?.id ?? null) : asked.sessionId;
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
    asked.signal?.throwIfAborted(); // the caller no longer waits for it
    const turn = await locks.begin(held);
    if (turn?.id !== accepted.turn.id) throw new ThroughlineError('conflict', 'Another request came first.');
    // Any other id becomes a session of the agent only when the agent names it (R1).
    if (sessionId !== null && sessionId === newest?.id) await giveSession(context, { turn, held }, sessionId);
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

/** Takes the lock, and waits for it as long as the caller asked for. */
async function lock(
  context: TrackerContext,
  conversation: Conversation,
  { waitMs, signal }: Pick<AskedRequest, 'waitMs' | 'signal'>,
): Promise<HeldLock> {
  const { locks, requests, parts } = context;
  const { id } = conversation;
  const start = parts.clock.monotonic();
  using changes = changesOf(parts.store, id);
  for (;;) {
    signal?.throwIfAborted();
    changes.seen();
    const taken = await locks.take(id);
    if (taken !== null) return interruptAll(context, taken.held, taken.left);
    const [open, holder] = [await requests.open(conversation), await requests.lock(id)];
    // A lock without a request: its holder is about to record it, or has just ended it.
    const left = Math.max(waitMs, open === null ? LOOK_MS : 0) - (parts.clock.monotonic() - start);
    if (left <= 0) throw busy(conversation, open, holder);
    // The lock may expire, or its process may die: there is no hint for either.
    const soon = open === null ? LOOK_AGAIN_MS : Math.min(LOOK_MS, holder?.expiresIn ?? LOOK_AGAIN_MS);
    await changes.next(Math.min(left, soon), signal);
  }
}

/** Hints that a conversation has changed. */
function changesOf(store: Store, conversation: string) {
  let isChanged = false;
  let wake = () => {};
  const stop = store.listen((moved) => {
    if (moved !== null && !moved.includes(conversation)) return;
    isChanged = true;
    wake();
  });
  return {
    /** Forgets earlier hints. */
    seen(): void {
      isChanged = false;
    },
    /** Resolves when there was a hint since `seen`, after this time, or when the signal aborts. */
    async next(ms: number, signal: AbortSignal | undefined): Promise<void> {
      if (isChanged || signal?.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      wake = resolve;
      signal?.addEventListener('abort', wake);
      await promise;
      clearTimeout(timer);
      signal?.removeEventListener('abort', wake);
    },
    [Symbol.dispose]: stop,
  };
}

/** Ends requests whose program is gone: what happened to them is unknown. */
async function interruptAll(context: TrackerContext, held: HeldLock, left: Turn | null): Promise<HeldLock> {
  const { locks } = context;
  const message = 'The program that tracked this request ended before the request did.';
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
    hint: 'Wait for its end ("waitMs"): a conversation has one writer at a time.',
  });
}

async function refuse(context: TrackerContext, { id }: Conversation, requestId: string, held: HeldLock): Promise<void> {
  const { parts, locks, owner } = context;
  try {
    const turn = await parts.store.findRequest(owner, requestId);
    // A request with the same id may have come at the same time in another conversation.
    if (turn?.conversation === id && !hasEnded(turn.state)) await locks.commit(held, refusedWrites(turn));
  } finally {
    // Also if the request could not be ended: the next holder ends it. If this fails too, the lock is free when its lease expires.
    await locks.release(held);
  }
}
