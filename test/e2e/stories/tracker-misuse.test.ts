import { describe, expect, test } from 'vitest';
import { ended, refusedWith, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { ownHolder } from '../support/served.ts';

// Wrong calls to a tracker. Each is refused with an error, and changes nothing.

async function openTracker(home: Home) {
  const tl = await home.open();
  return { tl, tracker: tl.tracker() };
}

const rows = (home: Home) => home.query('SELECT id, request_id, state FROM turns ORDER BY no');

describe('the same request id', () => {
  test('is a conflict with another session, and the same request with the same session, also after the session has rotated', async () => {
    await using home = new Home();
    const { tracker } = await openTracker(home);
    await tracker.trackRequest('req1', 'agent456', null);
    await refusedWith('conflict', tracker.trackRequest('req1', 'agent456', 'abc789'), /was tracked for a new session/);
    expect(await tracker.getRequest('req1')).toMatchObject({ status: 'pending', sessionId: null });
    await tracker.updateRequestSession('req1', 'abc789');
    expect(await tracker.trackRequest('req1', 'agent456', null)).toMatchObject({
      status: 'active',
      sessionId: 'abc789',
    });
    await tracker.completeRequest('req1');
    await tracker.trackRequest('req2', 'agent456', 'abc789');
    await tracker.updateRequestSession('req2', 'def012');
    await refusedWith('conflict', tracker.trackRequest('req2', 'agent456', 'def012'), /for the session "abc789"/);
    expect(await tracker.trackRequest('req2', 'agent456', 'abc789')).toMatchObject({ sessionId: 'def012' });
  });

  test('is a conflict with another prompt, also when the request is completed', async () => {
    await using home = new Home();
    const { tl, tracker } = await openTracker(home);
    const first = await tracker.trackRequest('req1', 'agent456', null, { prompt: 'Hello.' });
    const same = { ...first, lock: expect.objectContaining({ holder: ownHolder() }) };
    expect(await tracker.trackRequest('req1', 'agent456', null, { prompt: 'Hello.' })).toEqual(same);
    expect(await tracker.trackRequest('req1', 'agent456', null)).toEqual(same);
    await refusedWith('conflict', tracker.trackRequest('req1', 'agent456', null, { prompt: 'Bye.' }), /another prompt/);
    await refusedWith('conflict', tracker.completeRequest('req1', { prompt: 'Bye.' }), /another prompt/);
    await tracker.completeRequest('req1', { prompt: 'Hello.' });
    expect((await tl.engine.turns('agent456'))[0]?.prompt).toMatchObject([{ text: 'Hello.' }]);
    await tracker.trackRequest('req2', 'agent456', null);
    await refusedWith('conflict', tracker.trackRequest('req2', 'agent456', null, { prompt: 'Hello.' }), /without one/);
    await refusedWith('invalid', tracker.trackRequest('req3', 'agent789', null, { prompt: ' ' }), /empty/);
    await refusedWith(
      'invalid',
      tracker.trackRequest('req3', 'agent789', null, { promt: 'x' } as never),
      /no option "promt"/,
    );
    expect(await tracker.lockStatus('agent789')).toBeNull();
  });

  test('is a conflict without an agent if it had one, and with an agent if it had none', async () => {
    await using home = new Home();
    const { tracker } = await openTracker(home);
    await tracker.trackRequest('req1', 'agent456', null);
    await tracker.trackRequest('req2', null, null);
    await refusedWith('conflict', tracker.trackRequest('req1', null, null), /belongs to "agent456"/);
    await refusedWith('conflict', tracker.trackRequest('req2', 'agent789', null), /belongs to/);
    expect(await tracker.trackRequest('req2', null, null)).toMatchObject({ agentId: null, status: 'pending' });
    expect(await tracker.lockStatus('agent789')).toBeNull();
  });

  test('tracked twice at the same time is one request, also without an agent', async () => {
    await using home = new Home();
    const { tracker } = await openTracker(home);
    for (const agentId of ['agent456', null]) {
      const requestId = `of ${agentId}`;
      const both = await Promise.all([1, 2].map(() => tracker.trackRequest(requestId, agentId, null)));
      expect(both[0]).toEqual({ ...both[1], lock: expect.any(Object) });
      expect(await tracker.completeRequest(requestId)).toMatchObject({ status: 'completed' });
    }
    expect(rows(home)).toHaveLength(2);
  });

  test('is a conflict in every call if Throughline runs the turn, and nothing is locked', async () => {
    await using home = new Home();
    const { tl, tracker } = await openTracker(home);
    await tl.conversation('chat').ask('Hello.', { requestId: 'theirs' });
    const { turn } = await tl.conversation('slow').send('/hang', { requestId: 'running' }).accepted;
    for (const requestId of ['theirs', 'running']) {
      for (const agentId of ['chat', 'agent456', null])
        await refusedWith('conflict', tracker.trackRequest(requestId, agentId, null), /Throughline itself runs/);
      await refusedWith('conflict', tracker.updateRequestSession(requestId, 'abc789'), /Throughline itself runs/);
      await refusedWith('conflict', tracker.completeRequest(requestId), /Throughline itself runs/);
      await refusedWith('conflict', tracker.failRequest(requestId), /Throughline itself runs/);
      expect(await tracker.getRequest(requestId)).toBeNull();
    }
    expect(await tracker.lockStatus('agent456')).toBeNull();
    await tl.engine.cancel(turn.id);
    expect(await ended(tl.engine, turn)).toMatchObject({ state: 'cancelled' });
  });
});

describe('an invalid argument', () => {
  test.each([
    ['an empty session id', ['req1', 'agent456', '']],
    ['a session id that is not a string', ['req1', 'agent456', 7]],
    ['an agent id with control characters', ['req1', 'a\u001b[31m\nb', null]],
    ['an agent id that is too long', ['req1', 'x'.repeat(2_000), null]],
    ['an unpaired surrogate in an agent id', ['req1', 'a\ud800', null]],
    ['an unpaired surrogate in a request id', ['r\ud800', 'agent456', null]],
    ['an empty request id', ['', 'agent456', null]],
    ['undefined in place of null', ['req1', undefined, undefined]],
  ])('is refused before anything is stored: %s', async (_, args) => {
    await using home = new Home();
    const { tracker } = await openTracker(home);
    await refusedWith('invalid', tracker.trackRequest(...(args as [string, string, string])));
    expect(home.query('SELECT id FROM conversations')).toEqual([]);
    expect(rows(home)).toEqual([]);
    expect(await tracker.trackRequest('req1', 'agent456', null)).toMatchObject({ status: 'pending' });
  });

  test.each([
    ['usage that is not a number', { usage: { inputTokens: 'x' } }],
    ['usage that is not finite', { usage: { inputTokens: Number.NaN } }],
    ['negative usage', { usage: { outputTokens: -1 } }],
    ['fractional usage', { usage: { costMicros: 0.5 } }],
    ['an unknown field of usage', { usage: { input_tokens: 1 } }],
    ['an empty prompt', { prompt: '' }],
    ['an unpaired surrogate in the prompt', { prompt: 'a\ud800' }],
    ['a reply that is not a string', { reply: 7 }],
  ])('leaves the request open: %s', async (_, done) => {
    await using home = new Home();
    const { tl, tracker } = await openTracker(home);
    await tracker.trackRequest('req1', 'agent456', null);
    await refusedWith('invalid', tracker.completeRequest('req1', done as object));
    expect(await tracker.getRequest('req1')).toMatchObject({ status: 'pending' });
    await tracker.completeRequest('req1', { usage: { inputTokens: 1 } });
    expect((await tl.engine.summary('agent456')).usage).toMatchObject({ inputTokens: 1, outputTokens: 0 });
  });
});

describe('a session id', () => {
  test('may be the same for two owners, and neither sees the session of the other', async () => {
    await using home = new Home();
    const tl = await home.open();
    const [ann, bob] = [tl.as('ann').tracker(), tl.as('bob').tracker()];
    for (const tracker of [ann, bob]) {
      await tracker.trackRequest('req1', 'agent456', '1');
      await tracker.updateRequestSession('req1', '1');
      await tracker.completeRequest('req1');
    }
    await bob.trackRequest('req2', 'agent456', '1');
    expect(await ann.getSession('1')).toMatchObject({ requestCount: 1, lock: null });
    expect(await bob.getSession('1')).toMatchObject({ requestCount: 1, lock: { holder: ownHolder() } });
  });

  test('of another agent is refused, and the request id can be used again for the right session', async () => {
    await using home = new Home();
    const { tracker } = await openTracker(home);
    await tracker.trackRequest('req1', 'agent456', '1');
    await tracker.updateRequestSession('req1', '1');
    await tracker.completeRequest('req1');
    await refusedWith('conflict', tracker.trackRequest('req2', 'agent789', '1'), /another of your conversations/);
    await refusedWith('conflict', tracker.trackRequest('req2', null, '1'), /another of your conversations/);
    expect(await tracker.trackRequest('req2', 'agent789', null)).toMatchObject({ status: 'pending' });
  });

  test('of a conversation that Throughline runs is not tracked and cannot be tracked', async () => {
    await using home = new Home();
    const { tl, tracker } = await openTracker(home);
    const { turn } = await tl.conversation('chat').ask('Hello.');
    const id = turn.sessionId ?? '';
    expect(await tracker.getSession(id)).toBeNull();
    expect(await tracker.getAgentSession('chat')).toBeNull();
    expect(await tracker.sessionHistory('chat')).toEqual([]);
    await refusedWith('conflict', tracker.trackRequest('req1', 'agent456', id), /another of your conversations/);
  });
});

test('of two requests at the same time one is tracked, and the error of the other names it', async () => {
  await using home = new Home();
  const [{ tracker }, other] = await Promise.all([openTracker(home), home.host()]);
  for (const second of [tracker, other.tracker]) {
    const requests = ['c1', 'c2'].map((id) => `${id} ${second === tracker}`);
    const key = `agent ${second === tracker}`;
    const results = await Promise.allSettled(
      requests.map((id, i) => (i === 0 ? tracker : second).trackRequest(id, key, null)),
    );
    const first = requests[results.findIndex((result) => result.status === 'fulfilled')];
    const refused = results.find((result) => result.status === 'rejected');
    expect(refused?.reason).toMatchObject({ code: 'conflict' });
    expect(String(refused?.reason)).toContain(`busy with the request "${first}"`);
  }
});

test('Throughline neither retries a tracked turn nor prompts its conversation, even if a configured agent is named "tracked"', async () => {
  await using home = new Home({ 'tracked:local': {}, tracked: {} });
  const { tl, tracker } = await openTracker(home);
  await tracker.trackRequest('req1', 'agent456', null);
  await tracker.failRequest('req1');
  const [turn] = await tl.engine.turns('agent456');
  await refusedWith('refused', tl.engine.retry(turn?.id ?? ''), /ConversationTracker/);
  await refusedWith('refused', tl.engine.submit('agent456', 'Hello.', { agent: 'tracked' }), /ConversationTracker/);
  expect(rows(home)).toHaveLength(1);
  expect(await tracker.trackRequest('req2', 'agent456', null)).toMatchObject({ status: 'pending' });
});

test('the lock of a request that was taken over from a killed process is renewed like any other', async () => {
  await using home = new Home();
  // Three seconds, because a process on a busy machine that does not renew its lock in time loses it.
  const [tl, other] = await Promise.all([home.open({ leaseMs: 3_000 }), home.host()]);
  const tracker = tl.tracker();
  await other.tracker.trackRequest('req1', 'agent456', null);
  await other.kill();
  await tracker.updateRequestSession('req1', 'abc789');
  const first = home.leaseEnd();
  await until('the lock was renewed', () => home.leaseEnd() > first);
  expect(await tracker.completeRequest('req1')).toMatchObject({ status: 'completed' });
});
