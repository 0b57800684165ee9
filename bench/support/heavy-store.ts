import { NOTHING_OMITTED, type Receipt } from '../../src/core/restore/receipt.ts';
import type { TurnRecord } from '../../src/core/turn/record.ts';
import { NO_USAGE } from '../../src/core/turn/usage.ts';
import { systemProcesses } from '../../src/host/processes.ts';
import type { NewConversation } from '../../src/ports/store/conversations.ts';
import type { NewTask } from '../../src/ports/store/tasks.ts';
import type { Write } from '../../src/ports/store/writes.ts';
import type { Store } from '../../src/ports/store.ts';

export interface Sizes {
  /** Turns of a very long conversation. */
  readonly turns: number;
  /** Turns with a very large answer, and its size in bytes. */
  readonly large: number;
  readonly largeBytes: number;
  /** The size of hostile bodies. */
  readonly bodyBytes: number;
}

export const WORDS = 'It rains in the mountains, and the river carries the snow of last winter down to the sea. ';

export function record(n: number, text: string): TurnRecord {
  return {
    ...{ version: 1, n, agent: 'scripted', sessionId: 's', outcome: 'completed', failure: null, usage: NO_USAGE },
    ...{ prompt: [{ type: 'text', text: `Question ${n}` }], parts: [{ type: 'text', text }] },
    ...{ startedAt: 1_700_000_000_000 + n, endedAt: 1_700_000_000_001 + n },
  };
}

function spec(key: string): NewConversation {
  const id = crypto.randomUUID();
  return {
    id,
    key,
    agent: 'scripted',
    driver: 'worker',
    sandbox: id,
    cwd: null,
    place: 'elsewhere',
    restore: {},
    title: key,
  };
}

export async function fill(store: Store, { turns, large, largeBytes }: Sizes): Promise<void> {
  const many = (count: number, text: string) => Array.from({ length: count }, (_, i) => record(i + 1, text));
  const text = WORDS.repeat(Math.ceil(largeBytes / WORDS.length));
  const session = { agent: 'scripted', origin: 'rotated', parent: null, watermark: 0 } as const;
  const sessions = Array.from({ length: turns / 5 }, (_, i) => ({ ...session, id: `s${i}` }));
  for (const key of ['long', 'erase'])
    await store.importConversation('local', spec(key), { records: many(turns, 'A river in the mountains.'), sessions });
  await store.importConversation('local', spec('large'), { records: many(large, text), sessions: [] });
  await Promise.all(
    Array.from({ length: turns / 15 }, (_, i) => store.ensureConversation('local', spec(`short ${i}`))),
  );
  await fillLists(store, Math.floor(turns / 15));
  await fillEvents(store, 'events', turns, WORDS);
  await fillEvents(store, 'large events', large, text);
}

/** Fills every other list with as many entries as one request may ask for. */
async function fillLists(store: Store, count: number): Promise<void> {
  const all = <T>(make: (i: number) => Promise<T>) => Promise.all(Array.from({ length: count }, (_, i) => make(i)));
  await all((i) => ask(store, `open ${i}`, { deliverTo: 'somebody' }));
  const { conversation } = await ask(store, 'queue');
  await all((i) => store.enqueue('local', { ...turnOf(conversation, `queue ${i}`), options: {} }));
  const plan = { plan: 'plan', place: 'elsewhere', parallel: null };
  for (let done = 0; done < count; done += 1_000)
    await store.tasks.add('local', {
      ...{ ...plan, plan: `plan ${done}` },
      tasks: Array.from({ length: Math.min(1_000, count - done) }, (_, i) => task(done + i)),
    });
  await fillWrites(store, 'permissions', count, (i, turn) => ({
    ...{ write: 'ask', turn },
    permission: {
      ...{ id: `permission ${i}`, attempt: 1, title: WORDS, toolCall: { title: WORDS } },
      options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }],
    },
  }));
  await fillWrites(store, 'receipts', count, (i) => ({
    write: 'receipt',
    turn: null,
    session: null,
    receipt: receipt(i),
  }));
}

async function ask(store: Store, key: string, options: { deliverTo?: string } = {}) {
  const { conversation } = await store.ensureConversation('local', spec(key));
  const { id } = conversation;
  await store.enqueue('local', { ...turnOf(id, key), options });
  return { conversation: id, turn: key };
}

function turnOf(conversation: string, id: string) {
  const prompt = [{ type: 'text', text: WORDS }] as const;
  return { conversation, id, prompt, requestId: null, agent: 'scripted', defaultAgent: null, retryOf: null };
}

function task(i: number): NewTask {
  return {
    ...{
      id: `task ${i}`,
      name: `task ${i}`,
      goal: WORDS,
      gate: null,
      milestone: null,
      agent: 'scripted',
      sessions: 'kept',
    },
    ...{
      session: null,
      newSession: null,
      maxIterations: 3,
      budget: { costMicros: null, tokens: null },
      after: [],
      retryInterrupted: 0,
      cwd: null,
      sandbox: null,
    },
    permissions: 'ask',
  };
}

function receipt(i: number): Receipt {
  return {
    ...{
      turn: null,
      attempt: i + 1,
      agent: 'scripted',
      rung: 'resume',
      sessionId: null,
      carried: 0,
      condensed: 0,
      dropped: 0,
    },
    ...{
      unknownBefore: null,
      delivered: 0,
      deliveredTokens: 0,
      window: null,
      unsettled: false,
      modelCalls: 0,
      usage: NO_USAGE,
    },
    ...{ toolsRan: [], proof: 'none', before: 'none', after: null, tried: [], lockWaits: { count: 0, ms: 0 }, ms: 1 },
    ...NOTHING_OMITTED,
  };
}

/** A turn whose answer came in very many pieces. */
function fillEvents(store: Store, key: string, events: number, text: string): Promise<void> {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } as const;
  return fillWrites(store, key, events, (_, turn) => ({
    ...{ write: 'event', event: { kind: 'turn.update', turn, payload: { acp: 1, update } } },
  }));
}

/** Written directly under the lease, because an agent would take too long for so many. */
async function fillWrites(
  store: Store,
  key: string,
  count: number,
  write: (i: number, turn: string) => Write,
): Promise<void> {
  const { conversation, turn } = await ask(store, key);
  const worker = { id: 'bench', process: systemProcesses.self() };
  const what = { place: 'elsewhere', agents: ['scripted'], driver: 'worker', leaseMs: 600_000 } as const;
  const claim = await store.claim({ worker, ...what, conversation });
  if (claim === null) throw new Error('the conversation cannot be claimed');
  for (let done = 0; done < count; done += 250)
    await store.commit(
      claim.fence,
      1 + done,
      Array.from({ length: Math.min(250, count - done) }, (_, i) => write(done + i, turn)),
    );
  await store.release(claim.fence);
}
