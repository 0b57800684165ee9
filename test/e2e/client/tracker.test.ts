// What is different for trackers over HTTP: a server cannot see whether their programs are running, so locks are leases that expire.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { connect } from '../../../src/client.ts';
import { open } from '../../../src/index.ts';
import { CliHome } from '../cli/process.ts';
import { ServedHome, TOKEN } from '../http/support/served-home.ts';
import { serveProcess } from '../http/support/served-process.ts';
import { refusedWith, until } from '../support/conversations.ts';
import { CuttingProxy } from './support/cutting-proxy.ts';

const HOLDERS = ['a-first-program', 'a-second-program'] as const;

const newRequest = (requestId: string, holder: string) => ({ requestId, agentId: 'agent456', sessionId: null, holder });

test('while a program has the lock, another one is refused', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const [first, second] = HOLDERS;
  const { lock } = await caller.ok('POST', '/tracker/requests', newRequest('req1', first));
  expect(lock).toEqual({ holder: `client ${first}`, expiresIn: expect.any(Number) });
  const busy = await caller.post('/tracker/requests', newRequest('req2', second));
  expect(busy).toMatchObject({ status: 409, body: { code: 'conflict' } });
  expect(busy.body.detail).toMatch(
    /busy with the request "req1" \(client a-first-program, \d+ s left unless renewed\)/,
  );
  const foreign = await caller.post('/tracker/requests/req1/complete', { holder: second });
  expect(foreign).toMatchObject({ status: 409, body: { detail: expect.stringContaining('another process') } });
  expect((await caller.post('/tracker/requests/req1/renew', { holder: second })).status).toBe(409);
});

test('earlier sessions are dormant, and an id that the agent never named is none of its sessions', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const [holder] = HOLDERS;
  const request = async (requestId: string, named: object, sessionId: string) => {
    await caller.ok('POST', '/tracker/requests', { requestId, agentId: 'agent456', holder, ...named });
    await caller.ok('POST', `/tracker/requests/${requestId}/session`, { holder, sessionId });
    await caller.ok('POST', `/tracker/requests/${requestId}/complete`, { holder });
  };
  await request('req1', { sessionId: 'mistyped' }, 'abc789');
  await request('req2', { sessionId: null, current: true }, 'def012');
  expect(await caller.ok('GET', '/tracker/agents/agent456')).toMatchObject({ sessionIds: ['abc789', 'def012'] });
  expect((await caller.get('/tracker/sessions/mistyped')).status).toBe(404);
  const { sessions } = await caller.ok('GET', '/conversations/agent456/sessions');
  expect(sessions).toMatchObject([
    { id: 'def012', state: 'dormant', parent: 'abc789' },
    { id: 'abc789', state: 'dormant' },
  ]);
});

test('a program that does not renew its lock loses it when it expires, and its later writes are refused', async () => {
  await using home = await ServedHome.start({ engine: { leaseMs: 1_000 } });
  const { caller } = home;
  const [first, second] = HOLDERS;
  await caller.ok('POST', '/tracker/requests', newRequest('req1', first));
  // Another program waits for the lock, and gets it when it has expired.
  const next = await caller.ok('POST', '/tracker/requests', { ...newRequest('req2', second), waitMs: 60_000 });
  expect(next).toMatchObject({ status: 'pending', lock: { holder: `client ${second}` } });
  for (const verb of ['renew', 'complete', 'fail', 'session']) {
    const body = { holder: first, ...(verb === 'session' && { sessionId: 'late' }) };
    const late = await caller.post(`/tracker/requests/req1/${verb}`, body);
    // The request has already failed, so `fail` has nothing to do.
    expect({ verb, ...late }).toMatchObject({ status: verb === 'fail' ? 200 : 409 });
    if (verb !== 'fail') expect(late.body.detail).toContain('has already ended: interrupted');
  }
  expect(await caller.ok('GET', '/tracker/agents/agent456')).toMatchObject({ sessionIds: [] });
  expect((await home.engine.turns('agent456')).map(({ state }) => state)).toEqual(['interrupted', 'running']);
});

test('a program gets an expired lock back if no other program has taken it meanwhile', async () => {
  await using home = await ServedHome.start({ engine: { leaseMs: 1_000 } });
  const { caller } = home;
  const [holder] = HOLDERS;
  await caller.ok('POST', '/tracker/requests', { requestId: 'req1', agentId: 'a', sessionId: null, holder });
  await until('the lock has expired', async () => (await caller.ok('GET', '/tracker/requests/req1')).lock === null);
  const renewed = await caller.ok('POST', '/tracker/requests/req1/renew', { holder });
  expect(renewed.lock).toMatchObject({ holder: `client ${holder}` });
  await until(
    'the lock has expired again',
    async () => (await caller.ok('GET', '/tracker/requests/req1')).lock === null,
  );
  await caller.ok('POST', '/tracker/requests/req1/session', { holder, sessionId: 's1' });
  expect(await caller.ok('POST', '/tracker/requests/req1/complete', { holder })).toMatchObject({ status: 'completed' });
});

test('of writes of one program at the same time, each is stored or refused', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const [holder] = HOLDERS;
  await caller.ok('POST', '/tracker/requests', { requestId: 'req1', agentId: 'a', sessionId: null, holder });
  const ids = Array.from({ length: 8 }, (_, i) => `s${i}`);
  const named = await Promise.all(
    ids.map((sessionId) => caller.post('/tracker/requests/req1/session', { holder, sessionId })),
  );
  const accepted = ids.filter((_, i) => named[i]?.status === 200);
  expect(accepted.length).toBeGreaterThan(0);
  expect((await caller.ok('GET', '/tracker/agents/a')).sessionIds.toSorted()).toEqual(accepted);
});

const PROGRAM = `
  import { connect } from ${JSON.stringify(new URL('../../../src/client.ts', import.meta.url).href)};
  const tl = await connect({ url: process.argv[1], token: ${JSON.stringify(TOKEN)} });
  await tl.tracker().trackRequest('req1', 'agent456', null, { prompt: 'Hello' });
  process.stdout.write('tracked');
  setInterval(() => {}, 1000);`;

test('the client renews its locks while it runs; after it is killed they expire', async () => {
  await using home = await ServedHome.start({ engine: { leaseMs: 2_000 } });
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, home.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await once(child.stdout as NodeJS.ReadableStream, 'data');
    const renewals = () => home.metrics.text().match(/operation="renewTracked"[^}]*\} (\d+)/)?.[1] ?? '0';
    await until('the lock was renewed for longer than it lasts', () => Number(renewals()) >= 4);
    const tl = await connect({ url: home.url, token: TOKEN });
    const tracker = tl.tracker();
    await refusedWith('conflict', tracker.trackRequest('req2', 'agent456', null), /busy with the request "req1"/);
    child.kill('SIGKILL');
    const tracked = await tracker.trackRequest('req2', 'agent456', null, { waitMs: 60_000 });
    expect(tracked).toMatchObject({ status: 'pending' });
    expect(await tracker.getRequest('req1')).toMatchObject({ status: 'failed', prompt: [{ text: 'Hello' }] });
    await tl.close(); // releases the lock
    expect((await home.engine.summary('agent456')).lock).toBeNull();
  } finally {
    child.kill('SIGKILL');
  }
});

test('a lock survives the kill of its server, and the next server respects it', async () => {
  await using stack = new AsyncDisposableStack();
  const home = stack.adopt(new CliHome(), (one) => one.remove());
  const first = await serveProcess(home);
  const server = `unix:${first.socket}`;
  const tl = await open({ server, token: first.token, home: home.path });
  const otherTl = await open({ server, token: first.token, home: home.path });
  const [tracker, other] = [tl.tracker(), otherTl.tracker()];
  await tracker.trackRequest('req1', 'agent456', null, { prompt: 'Hello' });
  await tracker.updateRequestSession('req1', 'abc789');
  first.running.kill('SIGKILL');
  await first.running.ended;
  await serveProcess(home);
  await refusedWith('conflict', other.trackRequest('req2', 'agent456', null), /request "req1"/);
  expect(await tracker.completeRequest('req1', { reply: 'Hi' })).toMatchObject({ status: 'completed' });
  expect(await other.trackRequest('req2', 'agent456', 'abc789')).toMatchObject({ status: 'active' });
  expect((await tl.engine.turns('agent456'))[0]).toMatchObject({ state: 'completed', reply: 'Hi' });
  await Promise.all([tl.close(), otherTl.close()]);
});

test('when replies are lost, the request is tracked once and ends once', async () => {
  await using home = await ServedHome.start();
  await using proxy = await CuttingProxy.between(home.path, home.socket);
  const tl = await open({ server: `unix:${proxy.path}`, token: TOKEN });
  const tracker = tl.tracker();
  const calls = [
    () => tracker.trackRequest('req1', 'agent456', null, { prompt: 'Hello' }),
    () => tracker.updateRequestSession('req1', 'abc789'),
    () => tracker.completeRequest('req1', { reply: 'Hi' }),
  ];
  for (const [i, call] of calls.entries()) {
    proxy.loseReplies = 1;
    await call();
    expect(proxy.cuts).toBe(i + 1);
  }
  expect(await home.engine.turns('agent456')).toMatchObject([{ state: 'completed', reply: 'Hi' }]);
  expect(await tracker.sessionHistory('agent456')).toEqual(['abc789']);
  await tl.close();
});
