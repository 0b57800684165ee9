import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { refusedWith, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

test('the working directory of a conversation is the one that was named, and cannot be changed', async () => {
  await using home = new Home();
  const [one, two] = [join(home.path, 'one'), join(home.path, 'two')];
  for (const path of [one, two]) mkdirSync(path);
  const tl = await home.open();
  const { reply } = await tl.conversation('chat', { cwd: one }).ask('Which directory are you in?');
  expect(reply).toBe(`I am in ${one}.`);
  await refusedWith('refused', tl.conversation('chat', { cwd: two }).ask(WHICH_CODEWORDS), /another working directory/);
  expect((await tl.conversation('chat', { cwd: one }).get()).cwd).toBe(one);
  expect((await tl.conversation('chat').show()).turns.length).toBe(1);
});

test('a conversation without a directory of its own cannot be given one later', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('chat').ask('Hello.');
  await refusedWith(
    'refused',
    tl.conversation('chat', { cwd: home.path }).ask(WHICH_CODEWORDS),
    /another working directory/,
  );
});

test('a conversation that is named by its id is refused another directory', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('chat').ask('Hello.');
  const { id } = await tl.engine.fork('chat');
  const ensuring = tl.engine.ensure({ key: id, cwd: home.path });
  await refusedWith('refused', ensuring, new RegExp(`"${id}" exists with another working directory`));
});

test('a directory that does not exist is refused and not created', async () => {
  await using home = new Home();
  const tl = await home.open();
  await refusedWith(
    'refused',
    tl.conversation('chat', { cwd: join(home.path, 'nowhere') }).ask(WHICH_CODEWORDS),
    /does not exist/,
  );
  expect(await tl.engine.list()).toEqual([]);
});

test('other sandbox and restore settings than those of the conversation are refused, and not ignored', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('chat', { sandbox: 'project' }).ask('Hello.');
  await refusedWith('refused', tl.conversation('chat', { sandbox: 'other' }).ask(WHICH_CODEWORDS), /another sandbox/);
  await refusedWith(
    'refused',
    tl.conversation('chat', { restore: { policy: 'off' } }).ask(WHICH_CODEWORDS),
    /another restore\.policy/,
  );
  await refusedWith(
    'invalid',
    tl.conversation('chat').ask(WHICH_CODEWORDS, { restore: { policy: 'never' as 'off' } }),
    /restore.policy/,
  );
});

test('usage is summed by turn, session, conversation and day, and counted once in each', async () => {
  await using home = new Home({ a: { memory: 'process' }, b: {} });
  const tl = await home.open({ retryMs: 1 });
  await tl.engine.ensure({ key: 'chat' });
  const usages = [];
  for (const [agent, tokens] of [
    ['a', 10],
    ['b', 100],
    ['a', 1000],
  ] as const) {
    usages.push((await run(tl.engine, 'chat', `/usage ${tokens} ${tokens * 2}`, { agent })).turn.usage);
  }
  expect(usages.map(({ inputTokens }) => inputTokens)).toEqual([10, 100, 1000]);
  expect((await tl.engine.summary('chat')).usage).toMatchObject({
    inputTokens: 1110,
    outputTokens: 2220,
    modelCalls: 3,
  });
  const sessions = await tl.engine.sessions('chat');
  const bySession = Object.fromEntries(sessions.map(({ agent, usage }) => [agent, usage.inputTokens]));
  expect(bySession).toEqual({ a: 1010, b: 100 });
  const days = await tl.engine.usage();
  expect(days.toSorted((x, y) => x.agent.localeCompare(y.agent))).toMatchObject([
    { agent: 'a', turns: 2, usage: { inputTokens: 1010 } },
    { agent: 'b', turns: 1, usage: { inputTokens: 100 } },
  ]);
});

test('the usage of a restore is in its receipt and in its session, and in no turn', async () => {
  await using home = new Home({ a: { memory: 'process' } });
  const first = await home.open();
  await first.conversation('chat').ask('/usage 10 10');
  await first.close();
  const tl = await home.open();
  const { turn, receipt } = await tl
    .conversation('chat')
    .ask('/usage 1 1', { restore: { rebuild: true, rung: 'replay' } });
  expect(receipt.usage).toMatchObject({ inputTokens: 10, modelCalls: 1 });
  expect(turn.usage).toMatchObject({ inputTokens: 1, modelCalls: 1 });
  const { sessions } = await tl.conversation('chat').show();
  expect(sessions.map(({ usage }) => usage.inputTokens)).toEqual([10, 11]);
});
