import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Conversation } from '../../../src/core/conversation.ts';
import type { ConversationEvent, EventKind, EventPayloads } from '../../../src/core/event.ts';
import { delayedBy } from '../../../src/core/limits/slots.ts';
import { toPublicConversation, toPublicSummary } from '../../../src/core/public/conversation.ts';
import { toPublicEvent } from '../../../src/core/public/event.ts';
import { toPublicReceipt, toPublicSessions } from '../../../src/core/public/session.ts';
import { toPublicTask, toPublicTaskEvent } from '../../../src/core/public/task.ts';
import { toPublicPermission, toPublicTurn } from '../../../src/core/public/turn.ts';
import { NOTHING_OMITTED, type Receipt } from '../../../src/core/restore/receipt.ts';
import type { Session } from '../../../src/core/restore/session.ts';
import type { Task, TaskEvent, TaskEventKind, TaskEventPayloads, TaskTurn } from '../../../src/core/tasks/task.ts';
import type { Sent, Turn } from '../../../src/core/turn/turn.ts';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import { open } from '../../../src/index.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import { openApi } from '../../../src/wire/openapi.ts';
import { allEvents, ended, event, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { expectValid } from './support/conform.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

/**
 * Names of stored fields that are internal. No conversation, turn, session, receipt, summary, permission or event that is published has one
 * of them. Two other values use such a name for something else: `traits.position` of an agent, and `sandbox` (a name) of a task.
 */
const INTERNAL = new Set([
  ...['pid', 'boot', 'namespace', 'mark', 'started', 'process', 'label'], // processes
  ...['ref', 'memo', 'position', 'mirrored', 'storage'], // sessions
  ...['sandbox', 'place', 'hash', 'epoch', 'fence', 'begun', 'written'], // storage
]);

/** The paths of all internal fields in a value. */
function internalIn(value: unknown, at = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    ...(INTERNAL.has(name) && !Array.isArray(value) ? [`${at}.${name}`] : []),
    ...internalIn(inner, `${at}.${name}`),
  ]);
}

const SENT: Sent = {
  attempt: 1,
  prompt: 'our id of the prompt',
  session: 'our reference',
  position: '4711:abc',
  rung: 'transcript',
  delivered: { from: 1, to: 3, count: 3, hash: 'abcdef' },
  process: { kind: 'local', id: '4711', label: 'process 4711' },
  at: 5,
};

const PUBLIC_SENT = { attempt: 1, rung: 'transcript', delivered: { from: 1, to: 3, count: 3 }, at: 5 };

const RECEIPT: Receipt = {
  ...{ turn: 4, attempt: 1, agent: 'claude', rung: 'transcript', sessionId: 's-2', carried: 3, dropped: 0 },
  ...{ unknownBefore: 2, condensed: 2, shortened: 1, leftOut: { outputs: 2, images: 1, files: 0 } },
  ...{
    delivered: 3,
    deliveredTokens: 40,
    window: { tokens: 200_000, from: 'assumed' },
    unsettled: false,
    modelCalls: 0,
    usage: NO_USAGE,
    toolsRan: [],
  },
  ...{ proof: 'counted', before: 'counted', after: null, lockWaits: { count: 0, ms: 0 }, ms: 7 },
  tried: [{ rung: 'resume', sessionId: 's-1', failure: 'its files are gone' }],
};

const FAILURE = { code: 'agent_failed', message: 'It failed.' } as const;
const OPTIONS = [{ optionId: 'allow', name: 'Allow', kind: 'allow_once' }] as const;

/** One stored payload of every kind. A new kind does not compile until it is here. */
const STORED: { readonly [K in EventKind]: EventPayloads[K] } = {
  'conversation.created': { key: 'ticket', agent: 'claude', cwd: '/work' },
  'conversation.forked': { conversation: 'c-1', n: 2, hash: 'abcdef' },
  'conversation.imported': { turns: 3 },
  'conversation.moved': { from: '/a', to: '/b', by: 'ann' },
  'conversation.arranged': { pinned: true, putAway: false },
  'conversation.titled': { title: 'Notes', source: 'caller' },
  'turn.queued': { n: 1, agent: 'claude', requestId: 'r-1', retryOf: null, by: 'ann by key 0123', preview: 'Hello' },
  'turn.started': { n: 1, attempt: 1 },
  'turn.requeued': { n: 1, attempt: 1 },
  'turn.sent': { n: 1, sent: SENT },
  'turn.update': {
    acp: 1,
    update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Hello.' } },
  },
  'turn.retrying': { n: 1, attempt: 1, failure: FAILURE },
  'turn.stalled': { n: 1, silentMs: 120_000, tool: 'npm test', endsInMs: null },
  'turn.cancel_requested': { n: 1, by: 'ann' },
  'turn.ended': { n: 1, outcome: 'failed', failure: FAILURE, reply: '', usage: NO_USAGE },
  'session.opened': { id: 's-2', agent: 'claude', origin: 'rotated', parent: 's-1' },
  'session.changed': { id: 's-2', state: 'lost', watermark: 3, reason: 'its files are gone' },
  'session.locked': { id: null, waits: 1, ms: 20 },
  'restore.started': { rung: 'resume', total: 3 },
  'restore.progress': { rung: 'replay', done: 1, total: 3 },
  'restore.tried': { rung: 'resume', sessionId: 's-1', failure: 'its files are gone' },
  'restore.receipt': RECEIPT,
  'sandbox.created': { id: 'b-1', name: 'website' },
  'sandbox.reopened': { id: 'b-1', name: null },
  'sandbox.set-up': { id: 'b-1', name: null, steps: [{ name: 'install', ms: 5, code: null }] },
  'sandbox.rested': { id: 'b-1', name: null, reason: 'nobody used it' },
  'sandbox.destroyed': { id: 'b-1', name: null, reason: 'ann asked for it' },
  'permission.asked': { id: 'p-1', title: 'May I?', toolCall: { toolCallId: 't-1' }, options: OPTIONS },
  'permission.answered': { id: 'p-1', optionId: 'allow', by: 'ann', from: 'page' },
  'permission.denied': { id: 'p-1', reason: 'nobody can answer here' },
  'permission.withdrawn': { id: 'p-1', reason: 'The turn ended.' },
};

/** The public payloads of the kinds whose stored payload differs. */
const CHANGED: Partial<Record<EventKind, object>> = {
  'conversation.forked': { conversationId: 'c-1', n: 2 },
  'turn.sent': { n: 1, sent: PUBLIC_SENT },
  'session.opened': { sessionId: 's-2', agent: 'claude', origin: 'rotated', parent: 's-1' },
  'session.changed': { sessionId: 's-2', state: 'lost', watermark: 3, reason: 'its files are gone' },
  'session.locked': { sessionId: null, waits: 1, ms: 20 },
  'sandbox.created': { sandboxId: 'b-1', name: 'website' },
  'sandbox.reopened': { sandboxId: 'b-1', name: null },
  'sandbox.set-up': { sandboxId: 'b-1', name: null, steps: [{ name: 'install', ms: 5, code: null }] },
  'sandbox.rested': { sandboxId: 'b-1', name: null, reason: 'nobody used it' },
  'sandbox.destroyed': { sandboxId: 'b-1', name: null, reason: 'ann asked for it' },
  'permission.asked': { permissionId: 'p-1', title: 'May I?', toolCall: { toolCallId: 't-1' }, options: OPTIONS },
  'permission.answered': { permissionId: 'p-1', optionId: 'allow', by: 'ann', from: 'page' },
  'permission.denied': { permissionId: 'p-1', reason: 'nobody can answer here' },
  'permission.withdrawn': { permissionId: 'p-1', reason: 'The turn ended.' },
};

test.each(Object.keys(STORED) as EventKind[])(
  'a stored %s is published without internal fields, as its schema says',
  (kind) => {
    const stored = {
      conversation: 'c-2',
      seq: 9,
      kind,
      turn: 't-1',
      at: 5,
      payload: STORED[kind],
    } as ConversationEvent;
    const published = toPublicEvent(stored);
    const payload = CHANGED[kind] ?? STORED[kind];
    expect(published).toEqual({ conversationId: 'c-2', seq: 9, kind, turnId: 't-1', at: 5, payload });
    expect(internalIn(published)).toEqual([]);
    expectValid('#/components/schemas/ConversationEvent', JSON.parse(JSON.stringify(published)), kind);
  },
);

test('other stored values are published without internal fields, as their schemas say', () => {
  const times = { createdAt: 1, updatedAt: 2 };
  const stranded = { reason: 'no_process', message: 'No process runs turn 4 now.', hint: 'Start one.' } as const;
  const delayed = delayedBy('owner_slots', 4, { parallel: 4, perOwner: 3 });
  const stored: Conversation = {
    ...{ id: 'c-2', owner: 'ann', key: null, title: '', titleSource: 'none', agent: null, driver: 'worker' },
    ...{ pinned: true, putAway: false },
    ...{
      sandbox: 'tree-c-2',
      cwd: '/src/a-fix',
      project: '/src/a',
      place: 'h-1',
      restore: {},
      parent: { conversation: 'c-1', n: 2, hash: 'abcdef' },
    },
    ...{
      limitPerDay: null,
      choices: { agent: 'claude', model: 'm' },
      head: 2,
      historyCount: 2,
      lastSeq: 7,
      logId: 'log-1',
      state: 'queued',
      lastAgent: 'claude',
      open: 1,
      openPermissions: 0,
      usage: NO_USAGE,
      ...times,
    },
  };
  const conversation = toPublicConversation(stored, { stranded, delayed: null });
  expect(conversation).toMatchObject({
    project: { path: '/src/a', name: 'a' },
    worktree: true,
    branch: 'throughline/c-2',
  });
  const turn: Turn = {
    ...{ id: 't-1', conversation: 'c-2', n: 4, requestId: null, state: 'completed', agent: 'claude', options: {} },
    ...{ prompt: [{ type: 'text', text: 'Hello' }], attempt: 1, sessionId: 's-2', retryOf: null, sent: SENT },
    ...{ imported: false, replaces: null, replacedBy: null },
    ...{ cancelRequested: false, failure: null, usage: NO_USAGE, createdAt: 1, startedAt: 2, endedAt: 3 },
  };
  const session: Session = {
    ...{ ref: 'r-2', id: 's-2', conversation: 'c-2', agent: 'claude', origin: 'rotated', parent: 'r-1', watermark: 4 },
    ...{ dropped: 0, omitted: NOTHING_OMITTED, condensedTo: 2, state: 'live', position: '4711:abc', mirrored: 12 },
    ...{
      memo: 'm',
      context: { used: 5, size: 9 },
      unread: false,
      process: SENT.process,
      turns: 1,
      usage: NO_USAGE,
      openedAt: 1,
      usedAt: 2,
    },
  };
  const sessions = toPublicSessions([session, { ...session, ref: 'r-1', id: 's-1', parent: null }]);
  const lock = {
    holder: 'worker',
    process: { pid: 4711, started: '12', boot: 'b', namespace: 'n', mark: 'm' },
    epoch: 3,
    expiresIn: 900,
  };
  const counted = { contexts: 1, first: null, last: null, sessions: 2, changes: 1, open: 1, lock, usage: NO_USAGE };
  const summary = toPublicSummary(
    { conversation: 'c-2', key: null, title: '', ...counted },
    { stranded: null, delayed },
    { ...lock.process, pid: 4712 },
  );
  const permission = toPublicPermission({
    ...{ id: 'p-1', conversation: 'c-2', turn: 't-1', attempt: 1, title: 'May I?', toolCall: {}, options: OPTIONS },
    ...{
      state: 'answered',
      optionId: 'allow',
      answeredBy: 'ann',
      answeredFrom: 'phone',
      reason: null,
      askedAt: 1,
      endedAt: 2,
    },
  });
  expect(conversation.parent).toEqual({ conversationId: 'c-1', n: 2 });
  expect(sessions.map(({ id, parent }) => [id, parent])).toEqual([
    ['s-2', 's-1'],
    ['s-1', null],
  ]);
  expect(summary.lock).toEqual({ holder: 'another process', expiresIn: 900 });
  const values = {
    Conversation: conversation,
    Turn: toPublicTurn(turn),
    Session: sessions[0],
    Receipt: toPublicReceipt(RECEIPT),
    Summary: summary,
    Permission: permission,
  };
  for (const [name, value] of Object.entries(values)) {
    expect(internalIn(value), name).toEqual([]);
    expect(JSON.stringify(value), name).not.toContain('4711'); // the pid of the stored values
    expectValid(`#/components/schemas/${name}`, JSON.parse(JSON.stringify(value)), name);
  }
});

const TASK_TURN: TaskTurn = {
  ...{ purpose: 'work', round: 1, iteration: 1, turn: 't-1', conversation: 'c-1', agent: 'claude', outcome: 'failed' },
  ...{ failure: FAILURE, sessionId: 's-1', rung: 'live', usage: NO_USAGE, lockWaits: { count: 0, ms: 0 }, endedAt: 9 },
  denied: [{ permissionId: 'p-1', title: 'Write a file', reason: 'nobody can answer here' }],
};
const STEP = { round: 1, iteration: 1 };
const GATE = { verdict: 'fail', summary: 'It fails.', output: '', cut: 0, ms: 5 } as const;
const DECISION = { decision: 'retry', code: 'gate_failed', reason: 'It fails.' } as const;

/** One stored payload of every kind of event of a task. A new kind does not compile until it is here. */
const STORED_OF_TASKS: { readonly [K in TaskEventKind]: TaskEventPayloads[K] } = {
  'task.added': { name: 'parser', goal: 'Write it.', milestone: null, agent: 'claude', state: 'queued' },
  'task.queued': { reason: 'its turn' },
  'task.started': STEP,
  'task.opened': { conversation: 'c-1' },
  'task.turned': TASK_TURN,
  'task.gated': { ...STEP, result: GATE },
  'task.decided': { ...DECISION, ...STEP, state: 'running' },
  'task.cancel_requested': { by: 'ann' },
  'task.cancelled': { by: 'ann' },
  'task.retried': { by: 'ann', say: null },
};

test.each(Object.keys(STORED_OF_TASKS) as TaskEventKind[])(
  'a stored %s is published with public names of ids, as its schema says',
  (kind) => {
    const stored = { seq: 9, task: 'k-1', kind, at: 5, payload: STORED_OF_TASKS[kind] } as TaskEvent;
    const published = toPublicTaskEvent(stored);
    expect(published).toMatchObject({ seq: 9, taskId: 'k-1', kind, at: 5 });
    expect(JSON.stringify(published)).not.toMatch(/"(task|turn|conversation)":/);
    expectValid('#/components/schemas/TaskEvent', JSON.parse(JSON.stringify(published)), kind);
  },
);

test('a task is published without the fields that only the process needs that runs it next', () => {
  const task: Task = {
    ...{
      id: 'k-1',
      owner: 'ann',
      plan: 'r-1',
      place: 'p-1',
      name: 'parser',
      goal: 'Write it.',
      gate: null,
      milestone: null,
    },
    ...{ agent: 'claude', sessions: 'kept', session: null, newSession: null, maxIterations: 3 },
    budget: { costMicros: null, tokens: 9 },
    ...{ after: [], retryInterrupted: 0, cwd: null, sandbox: null, permissions: 'deny', state: 'running' },
    progress: {
      ...{ conversation: 'c-1', ...STEP, tries: 0, retryOf: 't-0', feedback: { gate: GATE, person: null } },
      ...{ adopted: true, turns: 1, spent: NO_USAGE, lockWaits: { count: 0, ms: 0 }, denied: 1, decision: DECISION },
    },
    ...{ cancelRequested: false, createdAt: 1, startedAt: 2, endedAt: null },
  };
  const published = toPublicTask(task);
  expect(published).toMatchObject({ planId: 'r-1', progress: { conversationId: 'c-1', turns: 1 } });
  for (const internal of ['retryOf', 'feedback', 'adopted']) expect(published.progress).not.toHaveProperty(internal);
  expectValid('#/components/schemas/Task', JSON.parse(JSON.stringify(published)), 'Task');
});

/** All values that an engine returns of a conversation with restores, permissions, retries and a fork. */
async function returnedValues(engine: Engine): Promise<unknown[]> {
  const made = await engine.ensure({ key: 'chat', title: 'Ambrosia' });
  const first = await run(engine, 'chat', 'The codeword is amber.');
  await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'other' });
  const asking = await engine.submit('chat', '/ask May I?\n/say done', { permissions: 'ask' });
  const { payload } = await event(engine, 'chat', 'permission.asked');
  const permission = await engine.answer(payload.permissionId, 'allow');
  await ended(engine, asking.turn);
  const failing = await engine.submit('chat', '/fail agent_failed 1');
  await ended(engine, failing.turn);
  const retried = await engine.retry(first.turn.id);
  await ended(engine, retried.turn);
  const hanging = await engine.submit('chat', '/say begun\n/hang');
  await event(engine, 'chat', 'turn.update', { turn: hanging.turn.id });
  const cancelled = await engine.cancel(hanging.turn.id);
  await ended(engine, hanging.turn);
  const rebuilt = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'transcript' } });
  const fork = await engine.fork('chat', { turn: 2, key: 'fork' });
  const warmed = await engine.warm('fork');
  return [
    ...[made, first, asking, permission, failing, retried, cancelled, rebuilt, fork, warmed],
    ...(await allEvents(engine, 'chat')),
    ...(await allEvents(engine, 'fork')),
    ...[await engine.list(), await engine.turns('chat'), await engine.sessions('chat'), await engine.receipts('chat')],
    ...[
      await engine.show('chat'),
      await engine.summary('chat'),
      await engine.permissions(),
      await engine.search('amber'),
    ],
    ...[await engine.rename('chat', 'Birch'), await engine.export('chat'), await engine.usage()],
  ];
}

test.each(['embedded', 'over HTTP'])('no value that an engine returns has an internal field, %s', async (how) => {
  await using home = await ServedHome.start({ agents: { scripted: {}, other: {} } });
  await using tl = await open({ server: home.url, token: TOKEN });
  const values = await returnedValues(how === 'embedded' ? home.engine : tl.engine);
  const kinds = new Set(values.flatMap((value) => (value as { kind?: string } | null)?.kind ?? []));
  for (const kind of ['turn.sent', 'turn.retrying', 'session.opened', 'restore.receipt', 'conversation.forked']) {
    expect(kinds).toContain(kind);
  }
  expect(internalIn(values)).toEqual([]);
});

test('docs/http.md lists every kind of event, with the fields of its payload', () => {
  const page = readFileSync(new URL('../../../docs/http.md', import.meta.url), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  for (const [kind, stored] of Object.entries(STORED)) {
    const row = rows.find((line) => line.includes(`\`${kind}\``));
    expect(row, kind).toBeDefined();
    if (kind === 'restore.receipt') continue; // a value of its own
    const { payload } = toPublicEvent({ kind, payload: stored } as ConversationEvent);
    for (const field of Object.keys(payload)) expect(row, kind).toContain(`\`${field}\``);
  }
});

/** Values that are the caller's own: they repeat a request, which may name a thing by its key or name. */
const AS_ASKED = ['Task.session', 'Task.sandbox', 'Turn.options.session', 'TurnView.options.session'];
const THING = /^(conversation|turn|session|sandbox|task|plan|permission|request|stream)s?$/;

interface JsonSchema {
  readonly [word: string]: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
}

/** All fields of a schema, with the fields of its inner values, by their paths. Named schemas are left out. */
function* fieldsOf(schema: JsonSchema, at: string): Generator<[path: string, name: string, schema: JsonSchema]> {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    yield [`${at}.${name}`, name, field];
    yield* fieldsOf(field, `${at}.${name}`);
  }
  const inner = [schema.items, schema.anyOf, schema.oneOf, schema.additionalProperties].flat();
  for (const one of inner) if (typeof one === 'object' && one !== null) yield* fieldsOf(one as JsonSchema, at);
}

function isText({ type, anyOf, items }: JsonSchema): boolean {
  if (items !== undefined) return isText(items as JsonSchema);
  return [type].flat().includes('string') || (Array.isArray(anyOf) && anyOf.some(isText));
}

test('an id in an answer is named as one: it is not called "session" or "conversation"', () => {
  const { components, paths } = openApi('test');
  const bodies = Object.values(paths).flatMap((path) =>
    Object.values(path).map((one) => JSON.stringify(one.requestBody)),
  );
  const isAsked = (name: string) =>
    ['TaskPlan', 'NewTask', 'Feed', 'FirstSettings'].includes(name) || bodies.join().includes(`/${name}"`);
  const answers = Object.entries(components.schemas).filter(([name]) => !isAsked(name));
  const fields = answers.flatMap(([name, schema]) => [...fieldsOf(schema as JsonSchema, name)]);
  expect(fields.length).toBeGreaterThan(300);
  const unnamed = fields.filter(([, name, field]) => THING.test(name) && isText(field) && field.enum === undefined);
  expect(unnamed.map(([path]) => path).toSorted()).toEqual(AS_ASKED.toSorted());
});

test('a client with another interface is refused before anything is done, and the hint says which side to update', async () => {
  await using home = await ServedHome.start();
  const post = (version: string) =>
    home.caller.with({ 'throughline-interface': version }).post('/conversations', { key: 'made' });
  const detail = 'This server has interface 4, and the client has interface 3.';
  expect(await post('3')).toMatchObject({ status: 400, body: { detail, hint: expect.stringMatching(/the client/) } });
  expect(await post('5')).toMatchObject({ status: 400, body: { hint: expect.stringMatching(/on the server/) } });
  expect((await home.caller.ok('GET', '/conversations')).conversations).toEqual([]);
  expect((await post('4')).status).toBe(200);
});
