import { execFileSync } from 'node:child_process';
import { randomUUIDv7 } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { CONVERSATION_STATES } from '../../../src/core/conversation.ts';
import { OWNER_HEADER } from '../../../src/wire/operations/operation.ts';
import { tasks } from '../../../src/wire/operations/tasks.ts';
import { OPERATIONS } from '../../../src/wire/operations.ts';
import { until } from '../../faults/harness/until.ts';
import { git, makeRepository } from '../../git.ts';
import { Caller, SERVED } from './support/caller.ts';
import { DOCUMENT, operationAt } from './support/conform.ts';
import { ServedHome, TOKEN } from './support/served-home.ts';

beforeAll(() => SERVED.clear()); // test files may share a process

test('every operation succeeds at least once, and each answer is as the OpenAPI document says', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  expect(await caller.ok('GET', '/me')).toEqual({
    owner: 'local',
    by: 'token',
    scopes: expect.arrayContaining(['admin']),
    owners: '*',
    isOperator: true,
    command: 'throughline',
    expiresAt: null,
  });
  expect((await caller.ok('POST', '/links')).link).toMatch(/^http.*\/enter\?code=[\w-]{43}$/);
  const made = await caller.ok('POST', '/conversations', { key: 'a b/c', title: 'Notes', restore: { policy: 'auto' } });
  const at = `/conversations/${encodeURIComponent('a b/c')}`;
  expect(await caller.ok('GET', at)).toEqual(made);
  expect(await caller.ok('POST', '/conversations', { key: 'a b/c' })).toEqual(made);
  expect(await caller.ok('PATCH', at, { title: 'Renamed' })).toMatchObject({ title: 'Renamed', id: made.id });
  expect(await caller.ok('PATCH', at, { title: 'Again', pinned: true })).toMatchObject({
    title: 'Again',
    pinned: true,
  });
  expect(await caller.ok('PATCH', at, { putAway: true })).toMatchObject({ pinned: true, putAway: true });
  expect(await caller.ok('GET', '/conversations?putAway=false')).toEqual({ conversations: [], next: null, putAway: 1 });
  expect((await caller.ok('GET', '/conversations?putAway=true&pinned=true')).conversations).toMatchObject([
    { id: made.id },
  ]);
  expect((await caller.ask('PATCH', at, {})).body).toMatchObject({ code: 'invalid' });
  expect(await caller.ok('PATCH', at, { title: 'Renamed' })).toMatchObject({ title: 'Renamed' });
  expect(await caller.ok('POST', `${at}/move`), 'it is at this place already').toMatchObject({
    id: made.id,
    stranded: null,
  });

  const first = await caller.post(`${at}/turns`, {
    prompt: 'The codeword is osprey',
    requestId: 'r-1',
    deliverTo: '#birds',
  });
  expect(first).toMatchObject({ status: 202, body: { duplicate: false, turn: { n: 1, requestId: 'r-1' } } });
  expect(await caller.finished(first.body.turn)).toMatchObject({ turn: { state: 'completed' } });
  const again = await caller.post(`${at}/turns`, {
    prompt: 'The codeword is osprey',
    requestId: 'r-1',
    deliverTo: '#birds',
  });
  expect(again.body).toMatchObject({ duplicate: true, turn: { id: first.body.turn.id } });
  expect((await caller.ok('GET', '/pending?limit=5')).pending).toMatchObject([{ turn: { requestId: 'r-1' }, seq: 7 }]);
  expect(await caller.ok('POST', `/turns/${first.body.turn.id}/delivered`)).toMatchObject({ delivered: true });
  const blocks = [{ type: 'text', text: 'Which codewords have you seen?', _meta: { kept: true } }];
  const { turn } = await caller.ok('POST', `${at}/turns`, { prompt: blocks });
  expect(turn.prompt).toEqual(blocks);
  expect((await caller.finished(turn)).reply).toContain('osprey');

  expect((await caller.ok('GET', `${at}/turns?after=1&limit=5`)).turns.map((one: { n: number }) => one.n)).toEqual([2]);
  const outline = await caller.ok('GET', `${at}/outline?before=end&limit=1`);
  expect(outline.turns).toMatchObject([{ n: 2, state: 'completed', rung: 'live', imported: false }]);
  expect(outline.turns[0]).not.toHaveProperty('prompt');
  expect((await caller.ok('GET', `${at}/records?after=1`)).records).toMatchObject([{ n: 2, outcome: 'completed' }]);
  expect((await caller.ok('GET', `${at}/records?before=end&limit=1`)).records).toMatchObject([{ n: 2 }]);
  expect((await caller.ok('GET', `${at}/turns?before=2`)).turns).toMatchObject([{ n: 1 }]);
  const { events } = await caller.ok('GET', `${at}/log?turn=2&limit=2`);
  expect(events).toMatchObject([{}, { kind: 'turn.ended', turnId: turn.id }]);
  expect((await caller.ok('GET', `${at}/log?before=${events[0].seq}&limit=1`)).events).toMatchObject([
    { seq: events[0].seq - 1 },
  ]);
  for (const wrong of ['log?before=0', 'log?before=-1', 'log?turn=0', 'turns?before=1&after=1', 'turns?before=x']) {
    expect(await caller.get(`${at}/${wrong}`)).toMatchObject({ status: 400, body: { code: 'invalid' } });
  }
  expect(await caller.ok('GET', `/turns/${turn.id}/told?attempt=1`)).toMatchObject({
    turnId: turn.id,
    parts: [{ as: 'prompt', content: blocks }],
  });
  expect(await caller.ok('GET', `/turns/${turn.id}`)).toMatchObject({ id: turn.id, state: 'completed' });
  expect(await caller.ok('GET', `${at}/summary`)).toMatchObject({ contexts: 2, open: 0 });
  expect((await caller.ok('GET', `${at}/view`)).turns).toHaveLength(2);
  expect(await caller.ok('GET', `${at}/sessions`)).toMatchObject({ sessions: [{ watermark: 2 }] });
  expect((await caller.ok('GET', `${at}/sessions?receipts=false`)).receipts).toEqual([]);
  expect((await caller.ok('GET', `${at}/restores?before=end&limit=1`)).restores).toMatchObject([
    { n: 2, receipt: { turn: 2, rung: 'live', carried: 1 } },
  ]);
  const { id } = made;
  const place = await caller.ok('GET', `${at}/sandbox`);
  expect(place).toEqual({ owner: 'local', sandboxId: id, conversationId: id, sessionId: expect.any(String) });
  expect((await caller.ok('GET', '/sandboxes?limit=1')).sandboxes).toMatchObject([{ id, name: null, state: 'ready' }]);
  expect(await caller.ok('GET', `/sandboxes/${id}`)).toMatchObject({ sandbox: { id }, setup: [], uses: [place] });
  const website = await caller.ok('POST', '/sandboxes', { name: 'website' });
  expect(website).toMatchObject({ name: 'website', state: 'ready', conversations: 0 });
  expect(await caller.ok('POST', '/sandboxes/website/exec', { command: ['pwd'] })).toMatchObject({
    ...{ code: 0, stdout: expect.stringContaining(website.id) },
  });
  expect((await caller.ok('GET', '/sandboxes/website?measure=true')).sandbox.disk).toMatchObject({ copies: 0 });
  expect(await caller.ok('POST', '/sandboxes/website/rest')).toMatchObject({ state: 'resting' });
  expect(await caller.ok('DELETE', '/sandboxes/website?force=true')).toEqual({ sandboxId: website.id });
  expect(await caller.get('/sandboxes/another')).toMatchObject({ status: 404, body: { code: 'not_found' } });
  expect((await caller.ok('POST', `${at}/warm`)).receipt).toMatchObject({ carried: 2, dropped: 0 });
  expect((await caller.ok('POST', `${at}/kill`)).sessions).toMatchObject([{ state: 'dormant', watermark: 2 }]);
  const repository = join(home.path, 'repository');
  execFileSync('git', ['init', '--quiet', repository], { stdio: 'ignore' });
  writeFileSync(join(repository, 'new.txt'), 'one\n');
  await caller.ok('POST', '/conversations', { key: 'repository', cwd: repository });
  expect(await caller.ok('GET', '/conversations/repository/changes')).toEqual({
    head: null,
    files: [{ path: 'new.txt', change: 'untracked', added: 1, removed: 0, patch: expect.stringContaining('+one\n') }],
    more: 0,
  });
  expect(await caller.get(`${at}/changes`)).toMatchObject({
    status: 404,
    body: { code: 'not_found', detail: 'The directory of this conversation is not in a git repository.' },
  });
  expect(await caller.ok('GET', '/conversations/repository/files?match=new')).toEqual({
    paths: ['new.txt'],
    more: false,
  });
  expect(await caller.ok('GET', `${at}/files?match=there-is-none`)).toEqual({ paths: [], more: false });
  // The settings name no roots: it is the home of whoever runs this test.
  const chosen = await caller.ok('GET', '/directories?hidden=true');
  expect(chosen).toMatchObject({ path: realpathSync(homedir()), above: null, roots: [chosen.path], home: homedir() });
  expect(await caller.get('/directories?path=/proc')).toMatchObject({ status: 422, body: { code: 'refused' } });
  const tree = { key: 'tree', cwd: makeRepository(join(home.path, 'tree')), worktree: true };
  expect(await caller.ok('POST', '/conversations', tree)).toMatchObject({ worktree: true });
  await caller.finished((await caller.ok('POST', '/conversations/tree/turns', { prompt: '/tool write new.txt' })).turn);
  const { commit } = await caller.ok('POST', '/conversations/tree/changes/keep', { commit: 'Add a file' });
  expect(git(tree.cwd, 'show', '--no-patch', '--format=%s', commit)).toBe('Add a file');
  expect(await caller.ok('POST', '/conversations/tree/changes/discard')).toEqual({ discarded: 'tree' });
  expect(await caller.post('/conversations/repository/changes/keep', { merge: true })).toMatchObject({ status: 422 });
  await caller.ok('DELETE', '/conversations/tree?sandbox=true');
  rmSync(repository, { recursive: true });
  expect(await caller.get('/conversations/repository/files')).toMatchObject({
    status: 404,
    body: { code: 'not_found', detail: expect.stringContaining('does not exist') },
  });
  await caller.ok('DELETE', '/conversations/repository');
  expect(await caller.ok('GET', `${at}/verify`)).toMatchObject({ broken: null });
  expect((await caller.ok('GET', '/search?q=osprey')).hits).toHaveLength(2);
  expect((await caller.ok('GET', '/conversations?q=osprey')).conversations).toHaveLength(1);
  const filtered = await caller.ok('GET', '/conversations?state=asks,idle&agent=scripted&since=2026-01-31&limit=1');
  expect(filtered).toMatchObject({
    conversations: [{ state: 'idle', lastAgent: 'scripted', openPermissions: 0 }],
    next: null,
  });
  for (const wrong of ['state=busy', 'state=', 'since=yesterday', 'since=2026-02-30', 'q=osprey&state=idle']) {
    expect(await caller.get(`/conversations?${wrong}`)).toMatchObject({ status: 400, body: { code: 'invalid' } });
  }
  const { body } = await caller.get('/conversations?state=busy');
  expect(body.detail).toBe(
    `"state" must be one or more of ${CONVERSATION_STATES.join(', ')}, with commas between them, not "busy".`,
  );
  const { usage } = await caller.ok('GET', '/usage'); // a row for each day: the test may run past midnight
  expect(usage.reduce((sum: number, { turns }: { turns: number }) => sum + turns, 0)).toBe(3);
  expect(usage[0]).toMatchObject({ agent: 'scripted' });
  expect((await caller.ok('GET', '/agents')).agents).toMatchObject([{ name: 'scripted', isDefault: true }]);

  const fork = await caller.post(`${at}/fork`, { turn: 1, key: 'fork' });
  expect(fork).toMatchObject({ status: 201, body: { parent: { conversationId: made.id, n: 1 } } });
  const exported = await caller.ok('GET', `${at}/export`);
  const imported = await caller.post('/imports', { exported, key: 'imported' });
  expect(imported).toMatchObject({ status: 201, body: { key: 'imported', historyCount: 2 } });
  const messages = [
    { role: 'user', content: 'The codeword is heron.' },
    { role: 'assistant', content: 'Noted.' },
  ];
  const kept = await caller.post('/imports', { exported: messages, key: 'kept', agent: 'scripted' });
  expect(kept).toMatchObject({ status: 201, body: { key: 'kept', agent: 'scripted', historyCount: 1 } });
  const refused = await caller.post('/imports', { exported: [{ role: 'system', content: 'Be kind.' }] });
  expect(refused).toMatchObject({ status: 400, body: { code: 'invalid', hint: expect.stringContaining('Leave') } });
  const retried = await caller.post(`/turns/${turn.id}/retry`, { requestId: 'r-2' });
  expect(retried).toMatchObject({ status: 202, body: { turn: { retryOf: turn.id } } });
  await caller.finished(retried.body.turn);

  const asking = await caller.ok('POST', `${at}/turns`, { prompt: '/ask May I?\n/say done', permissions: 'ask' });
  const permission = await waitForPermission();
  expect((await caller.ok('GET', `/permissions?conversation=${made.id}&open=true`)).permissions).toHaveLength(1);
  expect(await caller.ok('POST', `/permissions/${permission}`, { optionId: 'allow', from: 'phone' })).toMatchObject({
    state: 'answered',
  });
  expect(await caller.ok('GET', `/permissions/${permission}`)).toMatchObject({
    ...{ id: permission, optionId: 'allow', answeredFrom: 'phone' },
  });
  expect(await caller.post(`/permissions/${permission}`, { optionId: 'reject' })).toMatchObject({
    status: 409,
    body: {
      code: 'conflict',
      detail: expect.stringMatching(/already answered: "Allow[^"]*", by local by token, from the phone/),
    },
  });
  await caller.finished(asking.turn);
  const hanging = await caller.ok('POST', `${at}/turns`, { prompt: '/hang' });
  const waiting = await caller.ok('POST', `${at}/turns`, { prompt: 'Later.' });
  await until(
    'the first turn is running',
    async () => (await caller.ok('GET', `/turns/${hanging.turn.id}`)).state === 'running',
  );
  expect((await caller.ok('GET', `${at}/queue`)).queue).toMatchObject([{ id: waiting.turn.id, state: 'queued' }]);
  await caller.ok('POST', `${at}/queue`, { turns: [{ turn: waiting.turn.id, drop: true }] });
  expect((await caller.ok('GET', `/turns/${waiting.turn.id}`)).state).toBe('cancelled');
  await caller.ok('POST', `/turns/${hanging.turn.id}/cancel`);
  expect((await caller.finished(hanging.turn)).turn.state).toBe('cancelled');

  const { id: forked } = fork.body;
  await caller.ok('POST', '/conversations/fork/warm'); // its session is live, and ends when the conversation is erased
  const erased = await caller.ok('DELETE', '/conversations/fork');
  expect(erased).toEqual({
    conversationId: forked,
    remains: [{ what: 'sandbox', where: expect.stringContaining(forked) }],
  });
  expect(await caller.ok('DELETE', `/conversations/${forked}?sandbox=true`)).toEqual({
    conversationId: forked,
    remains: [],
  });
  for (const name of ['fork', forked]) expect((await caller.get(`/conversations/${name}`)).status).toBe(404);
  expect(await caller.ok('GET', `/conversations/${forked}/verify`)).toMatchObject({ broken: null });
  const openTurn = await caller.ok('POST', `${at}/turns`, { prompt: '/hang' });
  expect((await caller.ask('DELETE', at)).status).toBe(409);
  await caller.ok('POST', `/turns/${openTurn.turn.id}/cancel`);
  await caller.finished(openTurn.turn);

  const hints = caller.events('/events');
  const nextHint = hints.next();
  await until('the reader of hints is connected', () => home.metrics.readers > 0);
  await caller.ok('PATCH', '/conversations/imported', { title: 'Moved' });
  let hint = await nextHint;
  // Hints of earlier changes may come first.
  while (hint.value?.data.conversationId !== imported.body.id) hint = await hints.next();
  expect(hint.value?.data).toEqual({ conversationId: imported.body.id, seq: expect.any(Number) });
  await hints.return();

  const feeds = [
    { feed: 'a', of: 'hints' },
    { feed: 'b', of: 'board' },
  ];
  const frames = caller.frames([...feeds, { feed: 'c', of: 'conversation', conversation: 'imported' }]);
  const { streamId: stream } = await frames.next('opened');
  await frames.next('event');
  expect(await caller.ok('POST', `/streams/${stream}`, { feeds })).toEqual({ feeds: ['a', 'b'] });
  await frames.return();
  expect(await caller.ok('GET', '/health')).toMatchObject({ status: 'ok', reasons: [] });
  expect(await caller.ok('GET', '/health?details=true')).toMatchObject({ details: { version: 'test' } });
  expect(await caller.ok('GET', '/doctor')).toEqual({ findings: expect.any(Array) });

  const holder = 'a-program-of-a-test';
  const tracked = { requestId: 'req1', agentId: 'agent456', sessionId: null, holder, prompt: 'Hello', waitMs: 100 };
  expect(await caller.ok('POST', '/tracker/requests', tracked)).toMatchObject({
    ...{ requestId: 'req1', status: 'pending', sessionId: null },
    lock: { holder: `client ${holder}`, expiresIn: expect.any(Number) },
  });
  const request = '/tracker/requests/req1';
  expect(await caller.ok('GET', request)).toMatchObject({ status: 'pending', prompt: [{ text: 'Hello' }] });
  await caller.ok('POST', `${request}/session`, { holder, sessionId: 'abc789' });
  expect(await caller.ok('POST', `${request}/renew`, { holder })).toMatchObject({ status: 'active' });
  const agent = { agentId: 'agent456', sessionId: 'abc789', sessionIds: ['abc789'] };
  expect(await caller.ok('GET', '/tracker/agents/agent456')).toEqual({ ...agent, lock: expect.any(Object) });
  await caller.ok('POST', `${request}/complete`, { holder, reply: 'Hi', usage: { inputTokens: 3 } });
  expect(await caller.ok('GET', '/tracker/agents/agent456')).toEqual({ ...agent, lock: null });
  expect(await caller.ok('GET', '/tracker/sessions/abc789')).toMatchObject({ agentId: 'agent456', requestCount: 1 });
  await caller.ok('POST', '/tracker/requests', { ...tracked, requestId: 'req2' });
  expect(await caller.ok('POST', '/tracker/requests/req2/release', { holder })).toMatchObject({ lock: null });
  const failed = { holder, reason: 'no credit', reply: 'Well,', usage: { inputTokens: 4 } };
  expect(await caller.ok('POST', '/tracker/requests/req2/fail', failed)).toMatchObject({ status: 'failed' });
  // The operations of tasks are called in tasks.test.ts.
  const others = Object.keys(OPERATIONS).filter((name) => !(name in tasks));
  expect([...SERVED].toSorted()).toEqual(others.toSorted());

  async function waitForPermission(): Promise<string> {
    for await (const { data } of caller.events(`${at}/events`)) {
      if (data.kind === 'permission.asked') return data.payload.permissionId;
    }
    throw new Error('The agent did not ask for a permission.');
  }
});

test('the answer of a running turn is a 409; a request that waits gets it at the end; a request ends when its client disconnects', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const { turn } = await caller.ok('POST', '/conversations/chat/turns', { prompt: '/hang' });
  const at = `/turns/${turn.id}/answer`;
  const early = await caller.get(at);
  expect(early).toMatchObject({ status: 409, body: { code: 'conflict', hint: expect.stringContaining('?wait=') } });
  const start = performance.now();
  expect((await caller.get(`${at}?wait=1`)).status).toBe(409);
  expect(performance.now() - start).toBeGreaterThan(990);
  for (const wait of ['61', '-1', '1.5', 'long']) expect((await caller.get(`${at}?wait=${wait}`)).status).toBe(400);
  let requests = 0;
  const count = () => {
    requests += 1;
  };
  subscribe('http.server.request.start', count);
  const disconnect = new AbortController();
  const disconnecting = fetch(`${home.url}/v1${at}?wait=60`, {
    headers: { authorization: `Bearer ${TOKEN}` },
    signal: disconnect.signal,
  });
  const waiting = caller.ok('GET', `${at}?wait=60`);
  const loggedAnswers = () => home.log.filter((line) => line.includes('"operation":"answerOf"')).length;
  const before = loggedAnswers();
  await until('both requests have arrived', () => requests === 2);
  unsubscribe('http.server.request.start', count);
  disconnect.abort();
  await expect(disconnecting).rejects.toThrow();
  await until('the request of the disconnected client has ended', () => loggedAnswers() > before);
  await caller.ok('POST', `/turns/${turn.id}/cancel`);
  expect(await waiting).toMatchObject({ turn: { state: 'cancelled' }, reply: '', receipt: { rung: 'new' } });
});

test('a request that waits for an answer counts as a reader, and ends when its key is revoked', async () => {
  await using home = await ServedHome.start({ server: { mostReaders: 2, stream: { checkMs: 20 } } });
  const ann = await home.key('ann', ['read', 'prompt']);
  const { turn } = await ann.caller.ok('POST', '/conversations/chat/turns', { prompt: '/hang' });
  const at = `/turns/${turn.id}/answer`;
  const waiting = ann.caller.get(`${at}?wait=60`);
  await until('a second one is refused', async () => (await ann.caller.get(`${at}?wait=1`)).status === 429);
  expect((await ann.caller.get(at)).status).toBe(409); // a request that does not wait is no reader
  await home.revoke('ann', ann.id);
  expect((await waiting).status).toBe(401);
  await home.engine.as('ann').cancel(turn.id);
});

test('a server that stops answers the requests that wait', async () => {
  await using home = await ServedHome.start();
  const { turn } = await home.caller.ok('POST', '/conversations/chat/turns', { prompt: '/hang' });
  const waiting = fetch(`${home.url}/v1/turns/${turn.id}/answer?wait=60`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  for await (const { data } of home.caller.events('/conversations/chat/events')) if (data.kind === 'turn.sent') break;
  const [answer] = await Promise.all([waiting, home.down(60_000), home.caller.post(`/turns/${turn.id}/cancel`)]);
  expect([answer.status, await answer.json()]).toEqual([
    503,
    expect.objectContaining({ code: 'closed', detail: 'The server is stopping.' }),
  ]);
});

test('the first prompt to a new key creates the conversation, and needs only the scope to prompt', async () => {
  await using home = await ServedHome.start();
  const { caller } = await home.key('ann', ['prompt', 'read']);
  const at = `/conversations/${encodeURIComponent('ticket 4711')}/turns`;
  const first = await caller.post(at, { prompt: '/say Hello.', requestId: 'r-1' });
  expect(first).toMatchObject({ status: 202, body: { duplicate: false, turn: { n: 1 } } });
  const again = await caller.post(at, { prompt: '/say Hello.', requestId: 'r-1' });
  expect(again.body).toMatchObject({ duplicate: true, turn: { id: first.body.turn.id } });
  const { turn } = await caller.finished(first.body.turn);
  const page = await caller.ok('GET', at);
  expect(page.turns).toMatchObject([{ n: 1, reply: 'Hello.' }]);
  const found = await caller.ok('GET', `/conversations?session=${encodeURIComponent(turn.sessionId)}`);
  expect(found).toMatchObject({ conversations: [{ key: 'ticket 4711', id: turn.conversationId }], next: null });
  expect((await home.caller.ok('GET', `/conversations?session=${turn.sessionId}`)).conversations).toEqual([]);
  const refused = [
    { at: `/conversations/${randomUUIDv7()}/turns`, body: { prompt: 'Hello.' }, status: 404 },
    { at: '/conversations/new/turns', body: { prompt: 'Hello.', create: false }, status: 404 },
    { at: '/conversations/new%0a/turns', body: { prompt: 'Hello.' }, status: 400 },
    { at: '/conversations/new/turns', body: { prompt: 'Hello.', agent: 'nobody' }, status: 422 },
    { at: '/conversations/new/turns', body: { prompt: 'Hello.', requestId: 'r-1' }, status: 409 },
  ];
  for (const { at, body, status } of refused)
    expect({ at, status: (await caller.post(at, body)).status }).toEqual({ at, status });
  const reader = (await home.key('ann', ['read'])).caller;
  expect((await reader.post('/conversations/new/turns', { prompt: 'Hello.' })).status).toBe(403);
  expect((await caller.ok('GET', '/conversations')).conversations).toHaveLength(1);
});

test('the pages of the list of conversations have every conversation once', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  for (let i = 0; i < 7; i += 1) await caller.ok('POST', '/conversations', { key: `c${i}` });
  const keys: string[] = [];
  let next: string | null = '';
  while (next !== null) {
    const page: { conversations: { key: string }[]; next: string | null } = await caller.ok(
      'GET',
      `/conversations?limit=3${next === '' ? '' : `&before=${next}`}`,
    );
    keys.push(...page.conversations.map(({ key }) => key));
    next = page.next;
  }
  expect(keys.toSorted()).toEqual(['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6']);
});

test('permissions are listed in pages, oldest first', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const prompt = '/ask One?\n/ask Two?\n/ask Three?';
  await caller.finished((await caller.ok('POST', '/conversations/chat/turns', { prompt, permissions: 'deny' })).turn);
  const titles: string[] = [];
  for (let after = ''; ; ) {
    const { permissions } = await caller.ok('GET', `/permissions?limit=2&open=false${after}`);
    if (permissions.length === 0) break;
    titles.push(...permissions.map(({ title }: { title: string }) => title));
    after = `&after=${permissions.at(-1).id}`;
  }
  expect(titles).toEqual(['One?', 'Two?', 'Three?']);
  expect((await caller.get('/permissions?after=none')).status).toBe(404);
});

test('the OpenAPI document is served, and has every operation', async () => {
  await using home = await ServedHome.start();
  const served = await home.caller.get('//openapi.json');
  expect(served.body).toEqual(DOCUMENT);
  expect(operationAt('GET', '/v1/conversations/x/events')).toBe('follow');
  expect(Object.values(served.body.paths).flatMap((path) => Object.keys(path as object))).toHaveLength(
    Object.keys(OPERATIONS).length,
  );
});

test('health distinguishes live and ready; everybody sees the code of a problem, and only an admin sees its message', async () => {
  await using home = await ServedHome.start();
  const anybody = new Caller(home.url, {});
  const answers = async () => {
    const all = await Promise.all(['livez', 'readyz', 'healthz'].map((path) => anybody.get(`//${path}`)));
    expect(all.every(({ body }) => isDeepStrictEqual(body, all[0]?.body))).toBe(true);
    return { ...all[0]?.body, statuses: all.map(({ status }) => status) };
  };
  const fine = { status: 'ok', live: true, ready: true, reasons: [], version: 'test' };
  expect(await answers()).toEqual({ ...fine, statuses: [200, 200, 200] });
  const full = { code: 'storage_full', message: 'Full.', hint: 'Free some space.' } as const;
  home.health.report('one', { ...full, unready: false });
  const degraded = { ...fine, status: 'degraded', reasons: [{ code: 'storage_full' }] };
  expect(await answers()).toEqual({ ...degraded, statuses: [200, 200, 200] });
  home.health.report('one', { ...full, unready: true });
  expect(await answers()).toEqual({ ...degraded, status: 'unready', ready: false, statuses: [200, 503, 503] });
  const explained = { status: 'unready', live: true, ready: false, reasons: [full] };
  expect(await home.caller.ok('GET', '/health')).toEqual(explained);
  expect((await (await home.key('ann', ['read', 'prompt'])).caller.get('/health')).status).toBe(403);
  expect((await anybody.get('/health')).status).toBe(401);
  home.health.report('one', null);
  expect(await answers()).toEqual({ ...fine, statuses: [200, 200, 200] });
});

test('/metrics counts turns, restores and requests, and /reference lists the operations without any script', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const { turn } = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'hello' });
  await caller.finished(turn);
  const { body: metrics } = await caller.get('//metrics');
  expect(metrics).toContain('throughline_turns_total{outcome="completed"} 1\n');
  expect(metrics).toContain('throughline_restores_total{rung="new",proof="proved"} 1\n');
  expect(metrics).toContain('throughline_lock_waits_total 0\n');
  expect(metrics).toMatch(/throughline_readers \d/);
  expect(metrics).toContain('throughline_http_requests_total{operation="submit",status="202"} 1\n');
  const page = await caller.get('//reference');
  expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
  expect(page.body).toContain('/v1/conversations/{conversation}/turns');
  expect(page.body).not.toMatch(/<script|javascript:/);
});

test('a server that is stopping begins no turn, still answers, and leaves queued turns to the next server', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const running = await caller.ok('POST', '/conversations/chat/turns', {
    prompt: `/say Begun.\n/await ${home.path}/go`,
  });
  const queued = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'and then this' });
  const kinds: string[] = [];
  const reading = (async () => {
    for await (const { data } of caller.events('/conversations/chat/events')) kinds.push(data.kind);
  })();
  await until('the answer streams', () => kinds.includes('turn.update'));
  const ending = home.down(60_000);
  const { status, body } = await caller.get('//healthz');
  expect([status, body]).toMatchObject([503, { status: 'stopping', ready: false, reasons: [{ code: 'closed' }] }]);
  expect((await caller.get('//livez')).status).toBe(200);
  expect((await caller.post('/conversations/chat/turns', { prompt: 'no' })).body).toMatchObject({ code: 'closed' });
  expect((await caller.get(`/turns/${running.turn.id}`)).body.state).toBe('running');
  writeFileSync(`${home.path}/go`, '');
  await ending;
  await reading; // the stream ends without an error, after the end of the turn
  expect(kinds.filter((kind) => kind === 'turn.ended')).toHaveLength(1);
  await home.up();
  expect((await home.caller.finished(running.turn)).turn.state).toBe('completed');
  expect((await home.caller.finished(queued.turn)).turn.state).toBe('completed');
});

test('an owner may have only four requests at once that work in sandboxes, and can read meanwhile', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const bob = caller.with({ [OWNER_HEADER]: 'bob' });
  await caller.ok('POST', '/conversations', { key: 'notes' });
  await caller.ok('POST', '/sandboxes', { name: 'website' });
  const { stdout } = await caller.ok('POST', '/sandboxes/website/exec', { command: ['pwd'] });
  const work = stdout.trim();
  const command = ['sh', '-c', 'touch begun.$$; while [ ! -e go ]; do sleep 0.05; done'];
  const running = Array.from({ length: 4 }, () => caller.post('/sandboxes/website/exec', { command }));
  await until(
    'four commands are running',
    () => readdirSync(work).filter((name) => name.startsWith('begun.')).length === 4,
  );
  expect(await bob.ok('POST', '/sandboxes', { name: 'other' })).toMatchObject({ state: 'ready' });
  expect(await caller.post('/sandboxes', { name: 'fifth' })).toMatchObject({
    ...{ status: 429, body: { code: 'too_many', detail: '"local" has 4 requests that work in sandboxes already.' } },
  });
  expect((await caller.get('/conversations/notes/view')).status).toBe(200);
  expect((await caller.ok('GET', '/sandboxes')).sandboxes.map(({ name }: { name: string }) => name)).toEqual([
    'website',
  ]);
  writeFileSync(join(work, 'go'), '');
  for (const { status, body } of await Promise.all(running)) expect([status, body.code]).toEqual([200, 0]);
});
