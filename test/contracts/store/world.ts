// Helpers for tests of the store contract. They work with every store.
import { ThroughlineError } from '../../../src/core/errors.ts';
import type { ConversationEvent } from '../../../src/core/event.ts';
import { NOTHING_OMITTED, type Receipt } from '../../../src/core/restore/receipt.ts';
import { DEFAULT_RESTORE } from '../../../src/core/restore/restore-settings.ts';
import type { PermissionOption } from '../../../src/core/turn/permission.ts';
import type { TurnRecord } from '../../../src/core/turn/record.ts';
import type { Sent, Turn } from '../../../src/core/turn/turn.ts';
import { NO_USAGE, type Usage } from '../../../src/core/turn/usage.ts';
import type { NewConversation } from '../../../src/ports/store/conversations.ts';
import type { Claim, ClaimRequest, Fence, TurnToRun, WorkerInfo } from '../../../src/ports/store/leases.ts';
import type { NewSession } from '../../../src/ports/store/sessions.ts';
import type { NewTurn } from '../../../src/ports/store/turns.ts';
import type { EndOfTurn, Write } from '../../../src/ports/store/writes.ts';
import type { Store } from '../../../src/ports/store.ts';

/** A kind of store that must keep the contract. */
export interface StoreHarness {
  readonly name: string;
  /** An empty place for one store. */
  site(): Promise<StoreSite>;
}

export interface StoreSite {
  /**
   * A new handle, as another process would have. `destroy` closes open ones. `boot`: `boot-1` (the default), `boot-2` or `boot-3`; each
   * has its own monotonic clock.
   */
  open(options?: { boot?: string }): Promise<Store>;
  /** Lets time pass, the wall clock with it. */
  pass(ms: number): void;
  /** Moves the wall clock, without any time passing. */
  jump(ms: number): void;
  /** Everything that is stored, as one text. If it is equal, no row has changed. */
  contents(): Promise<string>;
  /** Damages what is stored, without the store. */
  damage(what: Damage): Promise<void>;
  destroy(): Promise<void>;
}

export type Damage =
  | { readonly kind: 'payload' | 'time' | 'missing'; readonly conversation: string; readonly seq: number }
  /** All events from `seq` on are deleted. */
  | { readonly kind: 'tail'; readonly conversation: string; readonly seq: number };

export interface World {
  readonly store: Store;
  readonly site: StoreSite;
}

export const ANN = 'ann';
export const BOB = 'bob';
export const AGENT = 'scripted';
const HERE = 'this-host';

let last = 0;
export function fresh(prefix: string): string {
  last += 1;
  return `${prefix}-${last}`;
}

export function spec(set: Partial<NewConversation> = {}): NewConversation {
  const id = fresh('conversation');
  const pinned = {
    driver: 'worker',
    sandbox: `sandbox-of-${id}`,
    cwd: null,
    place: HERE,
    restore: DEFAULT_RESTORE,
  } as const;
  return { id, key: null, title: null, agent: AGENT, ...pinned, ...set };
}

export async function newConversation(store: Store, set: Partial<NewConversation> = {}, owner = ANN): Promise<string> {
  return (await store.ensureConversation(owner, spec(set))).conversation.id;
}

export function prompt(text: string): NewTurn['prompt'] {
  return [{ type: 'text', text }];
}

export function newTurn(conversation: string, set: Partial<NewTurn> = {}): NewTurn {
  return {
    id: fresh('turn'),
    conversation,
    requestId: null,
    agent: null,
    defaultAgent: null,
    prompt: prompt('Say something.'),
    options: {},
    retryOf: null,
    ...set,
  };
}

export async function enqueue(
  store: Store,
  conversation: string,
  set: Partial<NewTurn> = {},
  owner = ANN,
): Promise<Turn> {
  return (await store.enqueue(owner, newTurn(conversation, set))).turn;
}

export const WORKER: WorkerInfo = worker('worker-1', 101);

export function worker(id: string, pid: number): WorkerInfo {
  return { id, process: { pid, started: '7', boot: 'boot-1', namespace: 'pid-1' } };
}

export function claimRequest(set: Partial<ClaimRequest> = {}): ClaimRequest {
  return { worker: WORKER, place: HERE, agents: [AGENT, 'other'], driver: 'worker', leaseMs: 1000, ...set };
}

/** For `next`: only the first. */
export const ONE = { perOwner: 1, all: 1 } as const;

export async function claim(store: Store, set: Partial<ClaimRequest> = {}): Promise<Claim> {
  const claimed = await store.claim(claimRequest(set));
  if (claimed === null) throw new Error('There was nothing to claim.');
  return claimed;
}

/** A lease with a counter: every write takes one. */
export class Holder {
  readonly fence: Fence;
  readonly #store: Store;
  counter = 1;

  constructor(store: Store, fence: Fence) {
    this.#store = store;
    this.fence = fence;
  }

  async write(...writes: Write[]): Promise<number> {
    const counter = this.counter;
    this.counter += writes.length;
    return (await this.#store.commit(this.fence, counter, writes)).seq;
  }
}

/** A conversation with one turn begun under a lease. */
export async function begun(store: Store, set: Partial<NewConversation> = {}) {
  const conversation = await newConversation(store, set);
  await enqueue(store, conversation);
  const claimed = await claim(store, { conversation, driver: set.driver ?? 'worker' });
  return { conversation, turn: claimed.turn as Turn, holder: new Holder(store, claimed.fence), fence: claimed.fence };
}

export function update(turn: string | null, text: string): Write {
  const content = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } as const;
  return { write: 'event', event: { kind: 'turn.update', turn, payload: { acp: 1, update: content } } };
}

export function session(set: Partial<NewSession> = {}): NewSession {
  const ref = fresh('ref');
  const none = { parent: null, watermark: 0, dropped: 0, position: null, process: null } as const;
  return { ref, id: `native-${ref}`, agent: AGENT, origin: 'new', state: 'live', ...none, ...set };
}

export function opening(opened: NewSession, turn: string | null = null): Write {
  return { write: 'open-session', session: opened, turn };
}

export function sending(turn: string, set: Partial<Sent> = {}): Write {
  const sent = {
    attempt: 1,
    prompt: null,
    session: null,
    position: null,
    rung: 'new',
    delivered: null,
    process: null,
    at: 5,
  } as const;
  return { write: 'send', turn, sent: { ...sent, ...set } };
}

const OPTIONS: readonly PermissionOption[] = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
  { optionId: 'no', name: 'No', kind: 'reject_once' },
];

const TOOL_CALL = { toolCallId: 'call-1', title: 'rm -r', rawInput: { path: '/' } };

export function asking(turn: string, toolCall: unknown = TOOL_CALL) {
  const permission = { id: fresh('permission'), attempt: 1, title: 'Delete everything?', toolCall, options: OPTIONS };
  return { write: 'ask', turn, permission } satisfies Write;
}

export function record(turn: Turn, set: Partial<TurnRecord> = {}): TurnRecord {
  return {
    version: 1,
    n: turn.n,
    agent: turn.agent,
    sessionId: null,
    outcome: 'completed',
    prompt: turn.prompt,
    parts: [{ type: 'text', text: `Answer ${turn.n}.` }],
    failure: null,
    usage: NO_USAGE,
    startedAt: 10,
    endedAt: 20,
    ...set,
  };
}

export function ending(turn: Turn, set: Partial<EndOfTurn> = {}): Write {
  const end = { outcome: 'completed', failure: null, record: record(turn), session: null, usage: NO_USAGE } as const;
  return { write: 'end', turn: turn.id, end: { ...end, ...set } };
}

export function endingUnsent(turn: Turn): Write {
  const failure = { code: 'agent_unavailable', message: 'It does not start.' } as const;
  return ending(turn, { outcome: 'failed', failure, record: null });
}

/** Counters of an epoch may have gaps. No test uses such high ones. */
let counter = 1_000_000;

/** Begins the next turn under a held lease. Null: there is none. */
export async function beginNext(store: Store, fence: Fence, agents: readonly string[]): Promise<TurnToRun | null> {
  for (;;) {
    const next = await store.nextTurn(fence, agents);
    if (next?.turn.state !== 'queued') return next;
    counter += 1;
    const refused = await codeOf(store.commit(fence, counter, [{ write: 'begin', turn: next.turn.id }]));
    if (refused === null) return { ...next, turn: (await store.findTurn(fence.owner, next.turn.id)) as Turn };
    // The queue was changed in between, so it is read again, as a worker does.
    if (refused !== 'conflict') throw new ThroughlineError(refused as 'lease_lost', 'The turn did not begin.');
  }
}

export async function nextTurn(store: Store, fence: Fence): Promise<Turn | null> {
  return (await beginNext(store, fence, [AGENT, 'other']))?.turn ?? null;
}

/** Runs one whole turn under a held lease. */
export async function runTurn(store: Store, holder: Holder, set: Partial<NewTurn> = {}, end: Partial<EndOfTurn> = {}) {
  await enqueue(store, holder.fence.conversation, set, holder.fence.owner);
  const turn = (await nextTurn(store, holder.fence)) as Turn;
  await holder.write(sending(turn.id, { session: end.session ?? null }), ending(turn, end));
  return turn;
}

export function usage(tokens: number): Usage {
  return { ...NO_USAGE, inputTokens: tokens, outputTokens: 2 * tokens, costMicros: 3 * tokens, modelCalls: 1 };
}

export function receipt(set: Partial<Receipt> = {}): Receipt {
  return {
    turn: 1,
    attempt: 1,
    agent: AGENT,
    rung: 'new',
    sessionId: null,
    carried: 0,
    condensed: 0,
    dropped: 0,
    ...NOTHING_OMITTED,
    unknownBefore: null,
    delivered: 0,
    deliveredTokens: 0,
    window: { tokens: 200_000, from: 'assumed' },
    unsettled: false,
    modelCalls: 0,
    usage: NO_USAGE,
    toolsRan: [],
    proof: 'counted',
    before: 'counted',
    after: null,
    tried: [],
    lockWaits: { count: 0, ms: 0 },
    ms: 1,
    ...set,
  };
}

export async function allEvents(store: Store, conversation: string, owner = ANN): Promise<ConversationEvent[]> {
  return store.events(owner, conversation, { after: 0, limit: 10_000 });
}

export async function kinds(store: Store, conversation: string): Promise<string[]> {
  return (await allEvents(store, conversation)).map((event) => event.kind);
}

/** The code of the error that a verb throws; null: it does not throw. */
export async function codeOf(verb: Promise<unknown>): Promise<string | null> {
  try {
    await verb;
    return null;
  } catch (error) {
    if (error instanceof ThroughlineError) return error.code;
    throw error;
  }
}
