import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Settings } from '../../../src/index.ts';
import { ended, refusedWith, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** Throughline with these limits in its settings. */
async function openWithLimits(home: Home, limits: NonNullable<Settings['limits']>) {
  const settings: Settings = { agents: { scripted: { adapter: 'scripted' } }, limits };
  const tl = await home.open({}, { settings });
  return { tl, engine: tl.engine };
}

test('a conversation that has spent its limit refuses prompts for the rest of the day, and says what to do', async () => {
  await using home = new Home();
  const limited = await openWithLimits(home, { conversationPerDay: '1k tokens' });
  await limited.engine.ensure({ key: 'chat' });
  const first = await run(limited.engine, 'chat', '/usage 900 99', { requestId: 'r-1' });
  expect(first.turn.state).toBe('completed');
  expect((await run(limited.engine, 'chat', '/usage 1 0')).turn.state).toBe('completed');
  await expect(limited.engine.submit('chat', 'Hello.')).rejects.toMatchObject({
    code: 'over_budget',
    message: expect.stringContaining('1000 of 1000 tokens spent'),
    hint: expect.stringMatching(/00:00 UTC, in .* raise limits\.conversationPerDay/),
  });
  await refusedWith('over_budget', limited.engine.retry(first.turn.id));
  // A repeated request still gives its turn (R3), and another conversation has its own limit.
  const again = await limited.engine.submit('chat', '/usage 900 99', { requestId: 'r-1' });
  expect(again).toMatchObject({ duplicate: true, turn: { id: first.turn.id } });
  await limited.engine.ensure({ key: 'other' });
  expect((await run(limited.engine, 'other', 'Hello.')).turn.state).toBe('completed');
  expect((await limited.engine.turns('chat')).length).toBe(2);
});

test('an owner has one limit for all conversations, some owners may have another, and owners are counted separately', async () => {
  await using home = new Home();
  const limits = { ownerPerDay: { usd: 0.01 }, owners: { bea: '1 USD', carl: null } };
  const limited = await openWithLimits(home, limits);
  const spend = async (owner: string, key: string) => {
    const engine = limited.engine.as(owner);
    await engine.ensure({ key });
    return (await run(engine, key, '/usage 10 10 10000')).turn.state;
  };
  expect(await spend('ann', 'a')).toBe('completed');
  await refusedWith('over_budget', spend('ann', 'b'));
  // A prompt that would create its conversation is refused as well, and creates none.
  await refusedWith('over_budget', limited.engine.as('ann').submit('c', 'Hello.'));
  await refusedWith('not_found', limited.engine.as('ann').conversation('c'));
  for (const owner of ['bea', 'carl']) {
    expect(await spend(owner, 'a')).toBe('completed');
    expect(await spend(owner, 'b')).toBe('completed');
  }
});

test('a turn that was accepted before the limit was reached fails unsent, and can be retried', async () => {
  await using home = new Home();
  const limited = await openWithLimits(home, { conversationPerDay: '100 tokens' });
  await limited.engine.ensure({ key: 'chat' });
  const go = join(home.path, 'go');
  const { turn: first } = await limited.engine.submit('chat', `/await ${go}\n/usage 90 10`);
  const { turn: second } = await limited.engine.submit('chat', 'Hello.');
  writeFileSync(go, ''); // until then, nothing is spent
  expect((await ended(limited.engine, first)).state).toBe('completed');
  const over = await ended(limited.engine, second);
  expect(over).toMatchObject({ state: 'failed', failure: { code: 'over_budget' }, sent: null });
  expect(over.prompt).toEqual([{ type: 'text', text: 'Hello.' }]);
  await limited.tl.close();
  const more = await openWithLimits(home, { conversationPerDay: '1M tokens' });
  const { turn } = await more.engine.retry(second.id);
  expect((await ended(more.engine, turn)).state).toBe('completed');
});

test('a turn that spends more than is left is interrupted, and its reply so far is kept', async () => {
  await using home = new Home();
  const limited = await openWithLimits(home, { ownerPerDay: '1000 tokens' });
  await limited.engine.ensure({ key: 'chat' });
  await run(limited.engine, 'chat', '/usage 500 0');
  const { turn } = await limited.engine.submit('chat', '/say begun\n/spent 499\n/say more\n/spent 501\n/hang');
  expect(await ended(limited.engine, turn)).toMatchObject({ state: 'interrupted', failure: { code: 'over_budget' } });
  expect((await limited.engine.answerOf(turn.id)).reply).toContain('more');
});

test.each(['conversationPerDay', 'ownerPerDay'])(
  'a limit in money (%s) refuses an agent that reports no cost, by its name, and no other agent',
  async (name) => {
    await using home = new Home();
    const agents = { mute: { adapter: 'scripted' }, open: { adapter: 'scripted' } } as const;
    const { engine } = await home.open({}, { settings: { agents, limits: { [name]: '5 USD' } } });
    await engine.ensure({ key: 'chat' });
    const first = await run(engine, 'chat', '/usage 10 10', { agent: 'mute' });
    expect(first.turn.usage).toMatchObject({ costMicros: 0, unreportedCosts: 1 });
    await expect(engine.submit('chat', 'Hello.', { agent: 'mute' })).rejects.toMatchObject({
      code: 'over_budget',
      message: expect.stringContaining('the agent "mute" reports no cost'),
      hint: expect.stringContaining('in tokens'),
    });
    for (const prompt of ['/usage 10 10 100', '/usage 10 10 100'])
      expect((await run(engine, 'chat', prompt, { agent: 'open' })).turn.state).toBe('completed');
  },
);

test('a turn that fails, or is cancelled, names no agent as one that reports no cost', async () => {
  await using home = new Home();
  const limited = await openWithLimits(home, { conversationPerDay: '5 USD' });
  await limited.engine.ensure({ key: 'chat' });
  expect((await run(limited.engine, 'chat', '/fail')).turn.state).toBe('failed');
  // Its process ended before it could report anything.
  const died = await run(limited.engine, 'chat', '/say begun\n/die');
  expect(died.turn).toMatchObject({ state: 'interrupted', usage: { costMicros: 0, unknownCosts: 1 } });
  expect((await run(limited.engine, 'chat', '/usage 10 10 100')).turn.state).toBe('completed');
});

test.each([
  ['in the middle of an answer', '/tool run_shell\n/say begun\n/hang', 'agent_message_chunk', 1],
  ['while a tool ran', '/say begun\n/tool run_shell\n/hang', 'tool_call_update', undefined],
])('whether the cost of a turn is unknown that is cancelled %s', async (_, prompt, last, unknownCosts) => {
  await using home = new Home();
  const { tl, engine } = await openWithLimits(home, { conversationPerDay: '5 USD' });
  const { events, accepted } = tl.conversation('chat').send(prompt);
  for await (const event of events) {
    if (event.kind === 'turn.update' && event.payload.update.sessionUpdate === last) {
      await engine.cancel((await accepted).turn.id);
    }
  }
  const [turn] = await engine.turns('chat');
  expect([turn?.state, turn?.usage.unknownCosts]).toEqual(['cancelled', unknownCosts]);
  expect((await run(engine, 'chat', 'Hello.')).turn.state).toBe('completed');
});

test('a conversation can have its own limit: it lowers that of the settings, can be changed, and is copied to a fork', async () => {
  await using home = new Home();
  const limited = await openWithLimits(home, { conversationPerDay: '1000 tokens' });
  const { engine } = limited;
  expect(await engine.ensure({ key: 'chat', limitPerDay: '100 tokens' })).toMatchObject({
    limitPerDay: { tokens: 100 },
  });
  await run(engine, 'chat', '/usage 100 0');
  await refusedWith('over_budget', engine.submit('chat', 'Hello.'));
  const fork = await engine.fork('chat');
  expect(fork.limitPerDay).toEqual({ costMicros: null, tokens: 100 });
  expect((await run(engine, fork.id, '/usage 1 0')).turn.state).toBe('completed');
  // ensure() without a limit keeps it. A limit above that of the settings has no effect.
  expect((await engine.ensure({ key: 'chat' })).limitPerDay).toEqual({ costMicros: null, tokens: 100 });
  expect(await engine.ensure({ key: 'chat', limitPerDay: '5M tokens' })).toMatchObject({
    limitPerDay: { tokens: 5e6 },
  });
  expect((await run(engine, 'chat', '/usage 900 0')).turn.state).toBe('completed');
  await refusedWith('over_budget', engine.submit('chat', 'Hello.'));
  expect((await engine.ensure({ key: 'chat', limitPerDay: null })).limitPerDay).toBeNull();
  await refusedWith('invalid', engine.ensure({ key: 'chat', limitPerDay: '7' }));
});

test('a task whose turn is refused asks a person, with the reason', async () => {
  await using home = new Home();
  const limited = await openWithLimits(home, { ownerPerDay: '10 tokens' });
  await limited.engine.ensure({ key: 'chat' });
  await run(limited.engine, 'chat', '/usage 10 0');
  const [task] = (await limited.tl.tasks.add({ tasks: [{ name: 'a', goal: 'Do it.', agent: 'scripted' }] })).tasks;
  for await (const { kind, payload } of limited.tl.tasks.follow()) {
    if (kind !== 'task.decided') continue;
    expect(payload).toMatchObject({ decision: 'ask', reason: expect.stringContaining('10 of 10 tokens') });
    break;
  }
  expect((await limited.tl.tasks.task(task?.id ?? '')).state).toBe('asking');
});
