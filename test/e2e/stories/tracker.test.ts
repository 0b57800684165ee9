import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { codewordsIn, refusedWith, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { ownHolder } from '../support/served.ts';

// Story 3: a program that runs an agent itself has to know the session of the agent, and must not invent one.

test('a naive session manager stores a request under the session id null, and cannot complete it', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const agent = scriptedAgent({ name: 'claude', options: { nameLate: true } });
    const sessions = new Map<string | null, string[]>();
    const register = (id: string | null, request: string) => sessions.set(id, [...(sessions.get(id) ?? []), request]);
    const session = await sandboxes.open(agent, await sandboxes.sandbox());
    register(session.id, 'req123');
    await ask(session, 'The codeword is amber.');
    const completed = sessions.get(session.id)?.includes('req123') ?? false;
    expect([...sessions.keys()]).toEqual([null]);
    expect(completed).toBe(false);
  } finally {
    await sandboxes.dispose();
  }
});

async function openTracker(home: Home) {
  const tl = await home.open();
  return { tl, tracker: tl.tracker() };
}

test('a request is pending until its agent has named the session, and only then the session is that of the agent', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  expect(await tracker.trackRequest('req123', 'agent456', null)).toMatchObject({
    requestId: 'req123',
    agentId: 'agent456',
    sessionId: null,
    status: 'pending',
  });
  expect(await tracker.getAgentSession('agent456')).toBeNull();
  expect(await tracker.updateRequestSession('req123', 'abc789')).toMatchObject({
    sessionId: 'abc789',
    status: 'active',
  });
  expect(await tracker.getAgentSession('agent456')).toBe('abc789');
  expect(await tracker.completeRequest('req123')).toMatchObject({ sessionId: 'abc789', status: 'completed' });
});

test('a session that rotates is the agent’s session from then on, and the history has both', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  await tracker.trackRequest('req123', 'agent456', null);
  await tracker.updateRequestSession('req123', 'abc789');
  await tracker.completeRequest('req123', { prompt: 'Hello', reply: 'Hi', usage: { inputTokens: 10 } });
  expect(await tracker.trackRequest('req124', 'agent456', await tracker.getAgentSession('agent456'))).toMatchObject({
    sessionId: 'abc789',
    status: 'active',
  });
  expect(await tracker.getAgentSession('agent456')).toBe('abc789');
  await tracker.updateRequestSession('req124', 'def012');
  expect(await tracker.getAgentSession('agent456')).toBe('def012');
  await tracker.completeRequest('req124', { prompt: 'Again', reply: 'Yes', usage: { inputTokens: 20 } });
  expect(await tracker.sessionHistory('agent456')).toEqual(['abc789', 'def012']);
  const { sessions, turns } = await tl.engine.show('agent456');
  expect(sessions).toMatchObject([
    { id: 'abc789', origin: 'new', parent: null, watermark: 1 },
    { id: 'def012', origin: 'rotated', parent: 'abc789', watermark: 2 },
  ]);
  expect(turns).toMatchObject([
    { requestId: 'req123', sessionId: 'abc789', reply: 'Hi' },
    { requestId: 'req124', sessionId: 'def012', reply: 'Yes' },
  ]);
  expect(await tl.engine.summary('agent456')).toMatchObject({ contexts: 2, sessions: 2, usage: { inputTokens: 30 } });
});

test('of the sessions of an agent only the one that its open request uses is live', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  const states = async () =>
    (await tl.engine.sessions('agent456')).map(({ id, state }) => `${id} ${state}`).toReversed();
  for (const [requestId, sessionId] of [
    ['req1', 'abc789'],
    ['req2', 'def012'],
    ['req3', 'ghi345'],
  ] as const) {
    await tracker.trackRequest(requestId, 'agent456', null, { current: true });
    await tracker.updateRequestSession(requestId, sessionId);
    if (requestId === 'req3') expect(await states()).toEqual(['abc789 dormant', 'def012 dormant', 'ghi345 live']);
    await tracker.completeRequest(requestId);
  }
  expect(await states()).toEqual(['abc789 dormant', 'def012 dormant', 'ghi345 dormant']);
  const { sessions } = await tl.engine.show('agent456');
  expect(sessions.map(({ id, parent }) => [id, parent])).toEqual([
    ['abc789', null],
    ['def012', 'abc789'],
    ['ghi345', 'def012'],
  ]);
});

test('sessions that an earlier version left live are ended when the next request takes the lock', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  for (const sessionId of ['abc789', 'def012']) {
    await tracker.trackRequest(`in ${sessionId}`, 'agent456', null, { current: true });
    await tracker.updateRequestSession(`in ${sessionId}`, sessionId);
    await tracker.completeRequest(`in ${sessionId}`);
  }
  const database = new DatabaseSync(home.file);
  database.exec("UPDATE sessions SET state = 'live' WHERE id = 'abc789'");
  database.close();
  await tracker.trackRequest('req3', 'agent456', null, { current: true });
  expect((await tl.engine.sessions('agent456')).map(({ id, state }) => `${id} ${state}`).toReversed()).toEqual([
    'abc789 dormant',
    'def012 live',
  ]);
});

test('an id that only the caller passed is no session of the agent until the agent has named it', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  expect(await tracker.trackRequest('req1', 'agent456', 'mistyped')).toMatchObject({
    status: 'pending',
    sessionId: null,
  });
  expect(await tracker.getAgentSession('agent456')).toBeNull();
  expect(await tracker.getSession('mistyped')).toBeNull();
  await tracker.updateRequestSession('req1', 'abc789');
  await tracker.completeRequest('req1');
  await tracker.trackRequest('req2', 'agent456', 'mistyped');
  expect(await tracker.getAgentSession('agent456')).toBe('abc789');
  expect(await tracker.failRequest('req2')).toMatchObject({ status: 'failed', sessionId: null });
  expect(await tracker.sessionHistory('agent456')).toEqual(['abc789']);
  expect(await tl.engine.turns('agent456')).toMatchObject([
    { sessionId: 'abc789', options: { session: 'mistyped' } },
    { sessionId: null, options: { session: 'mistyped' } },
  ]);
  // An id that the agent names is its session, also if the caller passed it.
  await tracker.trackRequest('req3', 'agent456', 'from before');
  await tracker.updateRequestSession('req3', 'from before');
  await tracker.completeRequest('req3');
  expect(await tracker.sessionHistory('agent456')).toEqual(['abc789', 'from before']);
});

test('an earlier session that the caller passes becomes the current one again when the agent names it', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  for (const sessionId of ['abc789', 'def012']) {
    await tracker.trackRequest(`in ${sessionId}`, 'agent456', null, { current: true });
    await tracker.updateRequestSession(`in ${sessionId}`, sessionId);
    await tracker.completeRequest(`in ${sessionId}`);
  }
  expect(await tracker.trackRequest('req3', 'agent456', 'abc789')).toMatchObject({ status: 'pending' });
  expect(await tracker.getAgentSession('agent456')).toBe('def012');
  await tracker.updateRequestSession('req3', 'abc789');
  await tracker.completeRequest('req3');
  expect(await tracker.sessionHistory('agent456')).toEqual(['abc789', 'def012', 'abc789']);
});

test('two requests that were tracked without a session and report the same one share it', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  for (const requestId of ['req1', 'req2']) {
    await tracker.trackRequest(requestId, 'agent456', null);
    expect(await tracker.updateRequestSession(requestId, 'abc789')).toMatchObject({
      status: 'active',
      sessionId: 'abc789',
    });
    await tracker.completeRequest(requestId);
  }
  expect(await tracker.sessionHistory('agent456')).toEqual(['abc789']);
  expect((await tl.engine.turns('agent456')).map(({ sent }) => sent?.rung)).toEqual(['new', 'resume']);
  expect(await tl.engine.summary('agent456')).toMatchObject({ contexts: 2, sessions: 1, changes: 0 });
});

test('a session has its agent, the time of its last use, the number of its requests, and its lock', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  const before = Date.now();
  expect(await tracker.getSession('abc789')).toBeNull();
  await tracker.trackRequest('req1', 'agent456', null);
  await tracker.updateRequestSession('req1', 'abc789');
  expect(await tracker.lockStatus('agent456')).toMatchObject({ holder: ownHolder() });
  expect(await tracker.getSession('abc789')).toMatchObject({
    agentId: 'agent456',
    lock: { holder: ownHolder() },
  });
  await tracker.completeRequest('req1');
  await tracker.trackRequest('req2', 'agent456', 'abc789');
  await tracker.completeRequest('req2');
  expect(await tracker.lockStatus('agent456')).toBeNull();
  const session = await tracker.getSession('abc789');
  expect(session).toMatchObject({ sessionId: 'abc789', agentId: 'agent456', requestCount: 2, lock: null });
  expect(session?.lastActivity).toBeGreaterThanOrEqual(before);
});

test('a failed request does not move the watermark', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  await tracker.updateRequestSession('req1', 'abc789');
  await tracker.completeRequest('req1');
  await tracker.trackRequest('req2', 'agent456', 'abc789');
  expect(await tracker.failRequest('req2', { reason: 'out of credit' })).toMatchObject({ status: 'failed' });
  expect((await tl.engine.sessions('agent456'))[0]).toMatchObject({ id: 'abc789', watermark: 1, state: 'unsettled' });
  expect((await tl.engine.turns('agent456'))[1]?.failure?.message).toBe('out of credit');
  expect(await tracker.lockStatus('agent456')).toBeNull();
});

test('a request that was never tracked is not found, and nothing is stored for it', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  expect(await tracker.getRequest('nobody')).toBeNull();
  await refusedWith('not_found', tracker.updateRequestSession('nobody', 'abc789'), /not tracked/);
  await refusedWith('not_found', tracker.completeRequest('nobody'), /not tracked/);
  await refusedWith('not_found', tracker.failRequest('nobody'), /not tracked/);
  expect(await tracker.getSession('abc789')).toBeNull();
});

test('a session that is reported twice is one session', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  await tracker.updateRequestSession('req1', 'abc789');
  expect(await tracker.updateRequestSession('req1', 'abc789')).toMatchObject({ sessionId: 'abc789', status: 'active' });
  await tracker.completeRequest('req1');
  expect(await tracker.completeRequest('req1')).toMatchObject({ status: 'completed' });
  expect(await tracker.sessionHistory('agent456')).toEqual(['abc789']);
  expect(await tl.engine.summary('agent456')).toMatchObject({ contexts: 1, sessions: 1 });
});

test('a second request while one is open is refused, and the error names the open one', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  await refusedWith('conflict', tracker.trackRequest('req2', 'agent456', null), /busy with the request "req1"/);
  expect(await tracker.getRequest('req2')).toBeNull();
  expect(await tracker.trackRequest('other', 'agent789', null)).toMatchObject({ status: 'pending' });
  expect(await tracker.updateRequestSession('req1', 'abc789')).toMatchObject({ status: 'active' });
});

test('the same request id twice is the same request; for another agent it is a conflict', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  const first = await tracker.trackRequest('req1', 'agent456', null);
  expect(await tracker.trackRequest('req1', 'agent456', null)).toEqual({ ...first, lock: expect.any(Object) });
  await refusedWith('conflict', tracker.trackRequest('req1', 'agent789', null), /belongs to "agent456"/);
});

test('a session of another agent is refused, and the request can still get its own session', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  await tracker.updateRequestSession('req1', 'abc789');
  await tracker.completeRequest('req1');
  await refusedWith('conflict', tracker.trackRequest('req2', 'agent789', 'abc789'), /abc789/);
  expect(await tracker.lockStatus('agent789')).toBeNull();
  await tracker.trackRequest('req3', 'agent789', null);
  await refusedWith('conflict', tracker.updateRequestSession('req3', 'abc789'), /abc789/);
  expect(await tracker.getRequest('req3')).toMatchObject({ sessionId: null, status: 'pending' });
  await tracker.updateRequestSession('req3', 'def012');
  await tracker.completeRequest('req3');
  expect(await tracker.getAgentSession('agent789')).toBe('def012');
  expect(await tracker.getAgentSession('agent456')).toBe('abc789');
});

test('no session is ever named null or left without a name', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  await refusedWith('invalid', tracker.updateRequestSession('req1', null as unknown as string));
  await refusedWith('invalid', tracker.updateRequestSession('req1', ' '));
  expect(home.query('SELECT id FROM sessions')).toEqual([]);
  expect(home.query('SELECT session_id FROM turns')).toEqual([{ session_id: null }]);
  await tracker.completeRequest('req1');
  expect(home.query('SELECT id FROM sessions')).toEqual([]);
});

test('a request without an agent is tracked by itself', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  expect(await tracker.trackRequest('req1', null, null)).toMatchObject({ agentId: null, status: 'pending' });
  expect(await tracker.trackRequest('req2', null, null)).toMatchObject({ agentId: null, status: 'pending' });
  await tracker.updateRequestSession('req1', 'abc789');
  expect(await tracker.completeRequest('req1')).toMatchObject({ agentId: null, sessionId: 'abc789' });
});

test('the lock of a process that was killed is free at once, and its request counts as failed', async () => {
  await using home = new Home();
  const [{ tracker }, other] = await Promise.all([openTracker(home), home.host()]);
  await other.tracker.trackRequest('req1', 'agent456', null);
  await other.tracker.updateRequestSession('req1', 'abc789');
  await refusedWith(
    'conflict',
    tracker.trackRequest('req2', 'agent456', 'abc789'),
    /\(another process, \d+ s left unless renewed\)/,
  );
  await other.kill();
  expect(await tracker.trackRequest('req3', 'agent456', 'abc789')).toMatchObject({ status: 'active' });
  expect(await tracker.getRequest('req1')).toMatchObject({ status: 'failed', sessionId: 'abc789' });
  expect(await tracker.completeRequest('req3')).toMatchObject({ status: 'completed' });
});

test('the prompt of a request is shown from the start, and is kept when its program is killed', async () => {
  await using home = new Home();
  const [{ tl, tracker }, other] = await Promise.all([openTracker(home), home.host()]);
  const prompt = 'The codeword is amber.';
  const blocks = [{ type: 'text', text: prompt }];
  await other.tracker.trackRequest('req1', 'agent456', null, { prompt });
  expect((await tl.engine.show('agent456')).turns).toMatchObject([{ state: 'running', prompt: blocks }]);
  expect((await tl.engine.conversation('agent456')).title).toBe(prompt);
  await other.kill();
  await tracker.trackRequest('req2', 'agent456', null, { prompt: 'Again.' });
  expect(await tracker.getRequest('req1')).toMatchObject({ status: 'failed', prompt: blocks });
  await tracker.failRequest('req2');
  expect((await tl.engine.show('agent456')).turns).toMatchObject([
    { state: 'interrupted', prompt: blocks, usage: { costMicros: 0, unknownCosts: 1 } },
    { state: 'failed', prompt: [{ text: 'Again.' }] },
  ]);
  expect((await tl.engine.export('agent456')).records.map((record) => record.prompt)).toMatchObject([
    blocks,
    [{ text: 'Again.' }],
  ]);
  expect(await tl.engine.search('amber')).toHaveLength(1);
});

test('a prompt that is given on completion becomes the prompt of the turn, however long it is', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  const long = `The codeword is amber.${' And so on.'.repeat(2_000)}`;
  await tracker.trackRequest('req1', 'agent456', null);
  expect(await tracker.getRequest('req1')).toMatchObject({ prompt: null });
  expect((await tl.engine.turns('agent456'))[0]?.prompt).toEqual([]);
  await tracker.completeRequest('req1', { prompt: [{ type: 'text', text: long }], reply: 'Noted.' });
  await tracker.trackRequest('req2', 'agent456', null);
  await tracker.completeRequest('req2');
  const { turns } = await tl.engine.show('agent456');
  expect(turns).toMatchObject([{ prompt: [{ text: long }] }, { prompt: [{ text: '[not recorded]' }] }]);
  const fork = await tl.engine.fork('agent456');
  expect((await tl.engine.turns(fork.id))[0]?.prompt).toMatchObject([{ text: long }]);
});

test('a request can be completed by another process when its own was killed, and only then', async () => {
  await using home = new Home();
  const [{ tl, tracker }, other] = await Promise.all([openTracker(home), home.host()]);
  await other.tracker.trackRequest('req1', 'agent456', null);
  await other.tracker.updateRequestSession('req1', 'abc789');
  await refusedWith('conflict', tracker.completeRequest('req1'), /tracked by another process/);
  await other.kill();
  expect(await tracker.completeRequest('req1', { prompt: 'Hello', reply: 'Hi' })).toMatchObject({
    status: 'completed',
  });
  expect((await tl.engine.sessions('agent456'))[0]).toMatchObject({ watermark: 1 });
});

test('a worker never claims a tracked request, and a prompt to its conversation is refused', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  await tracker.close(); // from here on nobody holds it
  const worker = await home.host({ claims: 'all' });
  await worker.calls.ask('worker-is-running', WHICH_CODEWORDS); // by then it has looked for work
  expect(await tracker.getRequest('req1')).toMatchObject({ status: 'pending' });
  expect((await tl.engine.summary('agent456')).lock).toBeNull();
  await refusedWith('refused', tl.engine.submit('agent456', 'Hello.'), /ConversationTracker/);
  await refusedWith('refused', tl.tracker().trackRequest('req2', 'worker-is-running', null), /Throughline itself runs/);
});

test('a program that takes its session from the tracker keeps the context that the naive one lost', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  const sandboxes = new TestSandboxes();
  try {
    const agent = scriptedAgent({ name: 'claude', options: { ids: 'rotating', nameLate: true } });
    const sandbox = await sandboxes.sandbox();
    let reply = '';
    for (const [i, word] of ['amber', 'birch', 'cobalt'].entries()) {
      const before = await tracker.getAgentSession('agent456');
      await tracker.trackRequest(`req${i}`, 'agent456', before);
      const how = before === null ? { kind: 'new' as const, id: null } : { kind: 'resume' as const, id: before };
      const session = await sandboxes.open(agent, sandbox, how);
      ({ reply } = await ask(session, `The codeword is ${word}. ${WHICH_CODEWORDS}`));
      await tracker.updateRequestSession(`req${i}`, session.id ?? '');
      await tracker.completeRequest(`req${i}`, { reply });
      await session.close();
    }
    expect(codewordsIn(reply)).toEqual(['amber', 'birch', 'cobalt']);
    expect((await tracker.sessionHistory('agent456')).length).toBe(3);
  } finally {
    await sandboxes.dispose();
  }
});

test('a lock is renewed while its process runs', async () => {
  await using home = new Home();
  const other = await home.host({ leaseMs: 3_000 });
  await other.tracker.trackRequest('req1', 'agent456', null);
  const { tracker } = await openTracker(home);
  const first = home.leaseEnd();
  await until('the lock was renewed', () => home.leaseEnd() > first);
  expect((await tracker.lockStatus('agent456'))?.expiresIn).toBeGreaterThan(0);
  expect(await other.tracker.completeRequest('req1')).toMatchObject({ status: 'completed' });
});

test('a tracked conversation is exported, imported and forked like any other, also without its prompts', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  for (const [requestId, prompt] of [['req1'], ['req2', 'The codeword is amber.']] as const) {
    await tracker.trackRequest(requestId, 'agent456', null);
    await tracker.updateRequestSession(requestId, 'abc789');
    await tracker.completeRequest(requestId, prompt === undefined ? { reply: 'Yes' } : { prompt, reply: 'Yes' });
  }
  await tl.engine.import(await tl.engine.export('agent456'), { key: 'copy' });
  await tl.engine.fork('agent456', { key: 'fork' });
  for (const key of ['copy', 'fork']) {
    const { reply, receipt } = await tl.conversation(key, { agent: 'scripted' }).ask(WHICH_CODEWORDS);
    expect(codewordsIn(reply)).toEqual(['amber']);
    expect(receipt).toMatchObject({ rung: 'transcript', carried: 2 });
  }
});

test('a failed request keeps its prompt, what was answered before, and what it cost', async () => {
  await using home = new Home();
  const { tl, tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  const usage = { inputTokens: 7, outputTokens: 2, costMicros: 30 };
  const failed = { reason: 'out of credit', prompt: 'The codeword is amber.', reply: 'Well,', usage };
  expect(await tracker.failRequest('req1', failed)).toMatchObject({ status: 'failed', lock: null });
  expect(await tracker.failRequest('req1', failed)).toMatchObject({ status: 'failed' });
  const [turn] = await tl.engine.turns('agent456');
  expect(turn).toMatchObject({
    ...{ state: 'failed', prompt: [{ text: 'The codeword is amber.' }], reply: 'Well,', usage },
    failure: { message: 'out of credit' },
  });
  expect((await tl.engine.summary('agent456')).usage).toMatchObject(usage);
  expect((await tl.engine.usage())[0]).toMatchObject({ usage });
  await refusedWith('invalid', tracker.failRequest('req1', { reson: 'x' } as object), /no option "reson"/);
});

test('a request may wait until the one before it has ended', async () => {
  await using home = new Home();
  const [{ tracker }, other] = await Promise.all([openTracker(home), home.host()]);
  for (const first of [tracker, other.tracker]) {
    const name = first === tracker ? 'here' : 'there';
    await first.trackRequest(`${name} 1`, name, null);
    const start = performance.now();
    await refusedWith(
      'conflict',
      tracker.trackRequest(`${name} 2`, name, null, { waitMs: 100 }),
      /busy with the request/,
    );
    // Less than 100: a timer counts from the start of the current iteration of the event loop, so it can fire a little early.
    expect(performance.now() - start).toBeGreaterThan(50);
    const waiting = tracker.trackRequest(`${name} 3`, name, null, { waitMs: Number.POSITIVE_INFINITY });
    await first.updateRequestSession(`${name} 1`, `session ${name}`);
    await first.completeRequest(`${name} 1`);
    expect(await waiting).toMatchObject({ requestId: `${name} 3`, status: 'pending', lock: { holder: ownHolder() } });
    expect(await tracker.getRequest(`${name} 2`)).toBeNull();
    await tracker.completeRequest(`${name} 3`);
  }
  await refusedWith('invalid', tracker.trackRequest('req9', 'x', null, { waitMs: -1 }), /"waitMs" must be a number/);
});

test('a request that waited continues in the session in which the request before it ended', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  const current = { current: true, waitMs: 60_000 };
  expect(await tracker.trackRequest('req1', 'agent456', null, current)).toMatchObject({
    status: 'pending',
    sessionId: null,
  });
  await tracker.updateRequestSession('req1', 'abc789');
  const waiting = tracker.trackRequest('req2', 'agent456', null, current);
  await tracker.updateRequestSession('req1', 'def012');
  await tracker.completeRequest('req1');
  expect(await waiting).toMatchObject({ status: 'active', sessionId: 'def012' });
  expect(await tracker.trackRequest('req2', 'agent456', null, current)).toMatchObject({ sessionId: 'def012' });
  await refusedWith('conflict', tracker.trackRequest('req2', 'agent456', null), /was tracked for the session "def012"/);
  await refusedWith(
    'invalid',
    tracker.trackRequest('req3', 'a', 'abc789', { current: true }),
    /cannot be used together/,
  );
  expect(await tracker.sessionHistory('agent456')).toEqual(['abc789', 'def012']);
});

test('a request that waits for a killed process gets the lock', async () => {
  await using home = new Home();
  const [{ tracker }, other] = await Promise.all([openTracker(home), home.host()]);
  await other.tracker.trackRequest('req1', 'agent456', null);
  const waiting = tracker.trackRequest('req2', 'agent456', null, { waitMs: 60_000 });
  await other.kill();
  expect(await waiting).toMatchObject({ status: 'pending' });
  expect(await tracker.getRequest('req1')).toMatchObject({ status: 'failed' });
});

test('a request that stops waiting for the lock is not stored', async () => {
  await using home = new Home();
  const { tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  const abort = new AbortController();
  const waiting = tracker.trackRequest('req2', 'agent456', null, { waitMs: 60_000, signal: abort.signal });
  const refused = refusedWith('cancelled', waiting, /stopped waiting for the lock/);
  abort.abort();
  await refused;
  await refusedWith(
    'cancelled',
    tracker.trackRequest('req3', 'agent789', null, { signal: abort.signal }),
    /stopped waiting/,
  );
  const stillWaiting = tracker.trackRequest('req4', 'agent456', null, { waitMs: 60_000 });
  const closed = refusedWith('closed', stillWaiting, /The tracker is closed/);
  await tracker.close();
  await closed;
  expect(home.query('SELECT request_id FROM turns')).toEqual([{ request_id: 'req1' }]);
});
