import { describe, expect, test } from 'vitest';
import { ended, refusedWith, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { ownHolder } from '../support/served.ts';

// What a program may get wrong with a tracker, and what then becomes of it: an error, and nothing changed.

async function tracker(home: Home) {
  const tl = await home.open();
  return { tl, t: tl.tracker() };
}

const rows = (home: Home) => home.query('SELECT id, request_id, state FROM turns ORDER BY no');

describe('the same request id', () => {
  test('with another session is a conflict, with the same one the same answer, also when the session has moved on', async () => {
    await using home = new Home();
    const { t } = await tracker(home);
    await t.trackRequest('req1', 'agent456', null);
    await refusedWith('conflict', t.trackRequest('req1', 'agent456', 'abc789'), /was tracked for a new session/);
    expect(await t.getRequest('req1')).toMatchObject({ status: 'pending', sessionId: null });
    await t.updateRequestSession('req1', 'abc789');
    expect(await t.trackRequest('req1', 'agent456', null)).toMatchObject({ status: 'active', sessionId: 'abc789' });
    await t.completeRequest('req1');
    await t.trackRequest('req2', 'agent456', 'abc789');
    await t.updateRequestSession('req2', 'def012');
    await refusedWith('conflict', t.trackRequest('req2', 'agent456', 'def012'), /for the session "abc789"/);
    expect(await t.trackRequest('req2', 'agent456', 'abc789')).toMatchObject({ sessionId: 'def012' });
  });

  test('with another prompt is a conflict, also at the end', async () => {
    await using home = new Home();
    const { tl, t } = await tracker(home);
    const first = await t.trackRequest('req1', 'agent456', null, { prompt: 'Hello.' });
    const same = { ...first, lock: expect.objectContaining({ holder: ownHolder() }) };
    expect(await t.trackRequest('req1', 'agent456', null, { prompt: 'Hello.' })).toEqual(same);
    expect(await t.trackRequest('req1', 'agent456', null)).toEqual(same);
    await refusedWith('conflict', t.trackRequest('req1', 'agent456', null, { prompt: 'Bye.' }), /another prompt/);
    await refusedWith('conflict', t.completeRequest('req1', { prompt: 'Bye.' }), /another prompt/);
    await t.completeRequest('req1', { prompt: 'Hello.' });
    expect((await tl.engine.turns('agent456'))[0]?.prompt).toMatchObject([{ text: 'Hello.' }]);
    await t.trackRequest('req2', 'agent456', null);
    await refusedWith('conflict', t.trackRequest('req2', 'agent456', null, { prompt: 'Hello.' }), /without one/);
    await refusedWith('invalid', t.trackRequest('req3', 'agent789', null, { prompt: ' ' }), /empty/);
    await refusedWith(
      'invalid',
      t.trackRequest('req3', 'agent789', null, { promt: 'x' } as never),
      /no option "promt"/,
    );
    expect(await t.lockStatus('agent789')).toBeNull();
  });

  test('without an agent is a conflict where it had one, and the other way round', async () => {
    await using home = new Home();
    const { t } = await tracker(home);
    await t.trackRequest('req1', 'agent456', null);
    await t.trackRequest('req2', null, null);
    await refusedWith('conflict', t.trackRequest('req1', null, null), /belongs to "agent456"/);
    await refusedWith('conflict', t.trackRequest('req2', 'agent789', null), /belongs to/);
    expect(await t.trackRequest('req2', null, null)).toMatchObject({ agentId: null, status: 'pending' });
    expect(await t.lockStatus('agent789')).toBeNull();
  });

  test('twice at once is one request, also without an agent', async () => {
    await using home = new Home();
    const { t } = await tracker(home);
    for (const agentId of ['agent456', null]) {
      const requestId = `of ${agentId}`;
      const both = await Promise.all([1, 2].map(() => t.trackRequest(requestId, agentId, null)));
      expect(both[0]).toEqual({ ...both[1], lock: expect.any(Object) });
      expect(await t.completeRequest(requestId)).toMatchObject({ status: 'completed' });
    }
    expect(rows(home)).toHaveLength(2);
  });

  test('of a turn that Throughline runs is a conflict, whatever is asked of it, and nothing is locked', async () => {
    await using home = new Home();
    const { tl, t } = await tracker(home);
    await tl.conversation('chat').ask('Hello.', { requestId: 'theirs' });
    const { turn } = await tl.conversation('slow').send('/hang', { requestId: 'running' }).accepted;
    for (const requestId of ['theirs', 'running']) {
      for (const agentId of ['chat', 'agent456', null])
        await refusedWith('conflict', t.trackRequest(requestId, agentId, null), /Throughline itself runs/);
      await refusedWith('conflict', t.updateRequestSession(requestId, 'abc789'), /Throughline itself runs/);
      await refusedWith('conflict', t.completeRequest(requestId), /Throughline itself runs/);
      await refusedWith('conflict', t.failRequest(requestId), /Throughline itself runs/);
      expect(await t.getRequest(requestId)).toBeNull();
    }
    expect(await t.lockStatus('agent456')).toBeNull();
    await tl.engine.cancel(turn.id);
    expect(await ended(tl.engine, turn)).toMatchObject({ state: 'cancelled' });
  });
});

describe('what cannot be meant', () => {
  test.each([
    ['an empty session id', ['req1', 'agent456', '']],
    ['a session id that is no text', ['req1', 'agent456', 7]],
    ['an agent id with control characters', ['req1', 'a\u001b[31m\nb', null]],
    ['an agent id without end', ['req1', 'x'.repeat(2_000), null]],
    ['half a character in an agent id', ['req1', 'a\ud800', null]],
    ['half a character in a request id', ['r\ud800', 'agent456', null]],
    ['an empty request id', ['', 'agent456', null]],
    ['nothing where there should be null', ['req1', undefined, undefined]],
  ])('is refused before anything is stored: %s', async (_, args) => {
    await using home = new Home();
    const { t } = await tracker(home);
    await refusedWith('invalid', t.trackRequest(...(args as [string, string, string])));
    expect(home.query('SELECT id FROM conversations')).toEqual([]);
    expect(rows(home)).toEqual([]);
    expect(await t.trackRequest('req1', 'agent456', null)).toMatchObject({ status: 'pending' });
  });

  test.each([
    ['usage that is no number', { usage: { inputTokens: 'x' } }],
    ['usage that is not finite', { usage: { inputTokens: Number.NaN } }],
    ['usage below nothing', { usage: { outputTokens: -1 } }],
    ['usage in parts', { usage: { costMicros: 0.5 } }],
    ['usage that is not known', { usage: { input_tokens: 1 } }],
    ['an empty prompt', { prompt: '' }],
    ['half a character in the prompt', { prompt: 'a\ud800' }],
    ['a reply that is no text', { reply: 7 }],
  ])('changes no request: %s', async (_, done) => {
    await using home = new Home();
    const { tl, t } = await tracker(home);
    await t.trackRequest('req1', 'agent456', null);
    await refusedWith('invalid', t.completeRequest('req1', done as object));
    expect(await t.getRequest('req1')).toMatchObject({ status: 'pending' });
    await t.completeRequest('req1', { usage: { inputTokens: 1 } });
    expect((await tl.engine.summary('agent456')).usage).toMatchObject({ inputTokens: 1, outputTokens: 0 });
  });
});

describe('a session id', () => {
  test('may be the same for two owners, and neither hears of the other', async () => {
    await using home = new Home();
    const tl = await home.open();
    const [ann, bob] = [tl.as('ann').tracker(), tl.as('bob').tracker()];
    for (const t of [ann, bob]) {
      await t.trackRequest('req1', 'agent456', '1');
      await t.completeRequest('req1');
    }
    await bob.trackRequest('req2', 'agent456', '1');
    expect(await ann.getSession('1')).toMatchObject({ requestCount: 1, lock: null });
    expect(await bob.getSession('1')).toMatchObject({ requestCount: 1, lock: { holder: ownHolder() } });
  });

  test('of another agent leaves the request id as it was: it may be used for the right one', async () => {
    await using home = new Home();
    const { t } = await tracker(home);
    await t.trackRequest('req1', 'agent456', '1');
    await t.completeRequest('req1');
    await refusedWith('conflict', t.trackRequest('req2', 'agent789', '1'), /another of your conversations/);
    await refusedWith('conflict', t.trackRequest('req2', null, '1'), /another of your conversations/);
    expect(await t.trackRequest('req2', 'agent789', null)).toMatchObject({ status: 'pending' });
  });

  test('of a conversation that Throughline runs is not tracked, and cannot be', async () => {
    await using home = new Home();
    const { tl, t } = await tracker(home);
    const { turn } = await tl.conversation('chat').ask('Hello.');
    const id = turn.sessionId ?? '';
    expect(await t.getSession(id)).toBeNull();
    expect(await t.getAgentSession('chat')).toBeNull();
    expect(await t.sessionHistory('chat')).toEqual([]);
    await refusedWith('conflict', t.trackRequest('req1', 'agent456', id), /another of your conversations/);
  });
});

test('of two requests at once one is tracked, and the other is told which', async () => {
  await using home = new Home();
  const [{ t }, other] = await Promise.all([tracker(home), home.host()]);
  for (const second of [t, other.tracker]) {
    const requests = ['c1', 'c2'].map((id) => `${id} ${second === t}`);
    const key = `agent ${second === t}`;
    const results = await Promise.allSettled(
      requests.map((id, i) => (i === 0 ? t : second).trackRequest(id, key, null)),
    );
    const first = requests[results.findIndex((result) => result.status === 'fulfilled')];
    const refused = results.find((result) => result.status === 'rejected');
    expect(refused?.reason).toMatchObject({ code: 'conflict' });
    expect(String(refused?.reason)).toContain(`busy with the request "${first}"`);
  }
});

test('a tracked turn is neither retried nor prompted by Throughline, also where an agent is called like the tracked one', async () => {
  await using home = new Home({ 'tracked:local': {}, tracked: {} });
  const { tl, t } = await tracker(home);
  await t.trackRequest('req1', 'agent456', null);
  await t.failRequest('req1');
  const [turn] = await tl.engine.turns('agent456');
  await refusedWith('refused', tl.engine.retry(turn?.id ?? ''), /ConversationTracker/);
  await refusedWith('refused', tl.engine.submit('agent456', 'Hello.', { agent: 'tracked' }), /ConversationTracker/);
  expect(rows(home)).toHaveLength(1);
  expect(await t.trackRequest('req2', 'agent456', null)).toMatchObject({ status: 'pending' });
});

test('the lock of a request that was taken over from a killed process is renewed like any other', async () => {
  await using home = new Home();
  // Long enough for a busy machine: who does not renew in time has lost the lock.
  const [tl, other] = await Promise.all([home.open({ leaseMs: 3_000 }), home.host()]);
  const t = tl.tracker();
  await other.tracker.trackRequest('req1', 'agent456', null);
  await other.kill();
  await t.updateRequestSession('req1', 'abc789');
  const first = home.leaseEnd();
  await until('it was renewed', () => home.leaseEnd() > first);
  expect(await t.completeRequest('req1')).toMatchObject({ status: 'completed' });
});
