import { writeFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { tasks as operations } from '../../../src/wire/operations/tasks.ts';
import { SERVED } from './support/caller.ts';
import { ServedHome } from './support/served-home.ts';

beforeAll(() => SERVED.clear()); // test files may share a process

test('tasks are added, run by the server, followed and reported, and their usage is counted', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const plan = [
    { name: 'first', goal: '/usage 7 5', gate: 'true' },
    { name: 'second', goal: 'x', after: 'first' },
  ];
  const added = await caller.ok('POST', '/tasks', { plan, requestId: 'nightly' });
  expect(added).toMatchObject({ duplicate: false, tasks: [{ name: 'first' }, { name: 'second', state: 'waiting' }] });
  expect(await caller.ok('POST', '/tasks', { plan, requestId: 'nightly' })).toMatchObject({ duplicate: true });

  const seen: { seq: number; kind: string; state?: string }[] = [];
  for await (const event of caller.events('/tasks/events')) {
    seen.push({ seq: event.data.seq, kind: event.data.kind, state: event.data.payload.state });
    if (seen.filter(({ state }) => state === 'done').length === 2) break;
  }
  expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, i) => i + 1));

  expect(await caller.ok('GET', '/tasks?state=done')).toMatchObject({ tasks: [{ name: 'second' }, { name: 'first' }] });
  expect(await caller.ok('GET', '/tasks/first')).toMatchObject({
    state: 'done',
    progress: { spent: { inputTokens: 7 } },
  });
  expect(await caller.ok('GET', '/plans/nightly')).toMatchObject({
    ...{ id: 'nightly', state: 'settled', needs: [] },
    tasks: [{ name: 'first', state: 'done', decision: { code: 'gate_passed' } }, { name: 'second' }],
  });
  const report = await caller.ok('GET', '/tasks/first/report');
  expect(report).toMatchObject({ gates: [{ result: { verdict: 'pass' } }], decisions: [{ decision: 'done' }] });
  const { usage } = await caller.ok('GET', '/tasks/usage');
  expect(usage.find(({ name }: { name: string }) => name === 'first').usage).toMatchObject({ inputTokens: 7 });
});

test('a task is cancelled and retried; an unknown task is a 404, and an invalid plan a 400', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const { tasks } = await caller.ok('POST', '/tasks', { plan: { goal: '/hang' } });
  const [{ id }] = tasks;
  await caller.ok('POST', `/tasks/${id}/cancel`);
  for await (const event of caller.events('/tasks/events')) if (event.data.kind === 'task.cancelled') break;
  expect(await caller.ok('GET', `/tasks/${id}`)).toMatchObject({ state: 'cancelled' });
  expect(await caller.ok('POST', `/tasks/${id}/retry`, { say: 'Again.' })).toMatchObject({ progress: { round: 2 } });
  expect((await caller.ask('GET', '/tasks/nobody')).status).toBe(404);
  expect((await caller.ask('POST', '/tasks', { plan: { goal: '' } })).status).toBe(400);
  await caller.ok('POST', `/tasks/${id}/cancel`);
  // With the test above, all operations of tasks have been called.
  expect([...SERVED].toSorted()).toEqual(Object.keys(operations).toSorted());
});

test.each([
  ['asks', '/fail agent_failed', 'The task "second" asks a person: Its turn failed:', '--say TEXT'],
  ['has failed', '/usage 7 5', 'The task "second" has failed: The budget of 5 tokens is spent:', '--budget AMOUNT'],
])(
  'a client that waits for a plan is told as soon as its middle task %s, and what to do',
  async (_, goal, message, how) => {
    await using home = await ServedHome.start();
    const { caller } = home;
    const plan = [
      { name: 'first', goal: `/await ${home.path}/go` },
      { name: 'second', goal, after: 'first', gate: 'false', budget: '5 tokens' },
      { name: 'third', goal: 'x', after: ['second'] },
    ];
    const { tasks } = await caller.ok('POST', '/tasks', { plan, requestId: 'nightly' });
    const { id } = tasks[1];
    expect(await caller.ok('GET', '/plans/nightly?wait=1')).toMatchObject({ state: 'running', needs: [] });
    const begun = performance.now();
    const waiting = caller.ok('GET', '/plans/nightly?wait=60');
    writeFileSync(`${home.path}/go`, '');
    const over = await waiting;
    expect(performance.now() - begun).toBeLessThan(55_000);
    expect(over).toMatchObject({
      state: 'needs_person',
      needs: [
        { taskId: id, message: expect.stringContaining(message), hint: expect.stringContaining(`${id} ${how}"`) },
      ],
      tasks: [{ state: 'done' }, { name: 'second' }, { name: 'third', state: 'waiting' }],
    });
    expect(over.needs[0].message).toContain('1 task waits for it.');
    // The client cancels what waits, as the hint says, and the plan is over.
    await caller.ok('POST', `/tasks/${id}/cancel`);
    await caller.ok('POST', '/tasks/third/cancel');
    expect(await caller.ok('GET', '/plans/nightly?wait=60')).toMatchObject({ state: 'settled', needs: [] });
  },
);

test('the plan of another owner, and an unknown one, are a 404', async () => {
  await using home = await ServedHome.start();
  await home.caller.ok('POST', '/tasks', { plan: { goal: 'x' }, requestId: 'nightly' });
  const { caller: other } = await home.key('ann', ['read']);
  for (const [caller, id] of [
    [other, 'nightly'],
    [home.caller, 'daily'],
  ] as const) {
    const answer = await caller.ask('GET', `/plans/${id}?wait=30`);
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
      404,
      'not_found',
      `There is no plan "${id}".`,
    ]);
  }
});

test('a relative directory is refused, because the caller does not know the working directory of the server', async () => {
  await using home = await ServedHome.start();
  const { caller } = home;
  const plan = { tasks: [{ goal: 'x' }, { goal: 'y', cwd: '.' }] };
  const task = await caller.ask('POST', '/tasks', { plan });
  expect([task.status, task.body.detail]).toEqual([400, 'tasks[1].cwd: The working directory "." is not absolute.']);
  const conversation = await caller.ask('POST', '/conversations', { key: 'k', cwd: '.' });
  expect([conversation.status, conversation.body.hint]).toEqual([400, 'A server needs an absolute path.']);
  expect(await caller.ok('GET', '/tasks')).toMatchObject({ tasks: [] });
});

test('a command, a directory, a native session and a parallel limit need more than the scope to prompt; other owners see no task', async () => {
  await using home = await ServedHome.start();
  const { caller: prompter } = await home.key('ann', ['read', 'prompt']);
  for (const more of [{ gate: 'true' }, { cwd: '/' }, { session: 's' }]) {
    expect((await prompter.ask('POST', '/tasks', { plan: { goal: 'x', ...more } })).status).toBe(403);
  }
  const parallel = { tasks: [{ goal: 'x' }], parallel: 1_000 }; // this limit is for all owners
  expect((await prompter.ask('POST', '/tasks', { plan: parallel })).status).toBe(403);
  // The id of a new session names nothing that exists, so it needs no more, as with a prompt.
  const issued = await prompter.ask('POST', '/tasks', { plan: { goal: 'x', newSession: 's' } });
  expect([issued.status, issued.body.code]).toEqual([422, 'refused']);
  const gate = { agent: 'scripted' };
  const { tasks } = await prompter.ok('POST', '/tasks', { plan: { goal: 'x', gate } });
  expect((await home.caller.ask('GET', `/tasks/${tasks[0].id}`)).status).toBe(404);
  expect(await home.caller.ok('GET', '/tasks')).toEqual({ tasks: [], seq: 0, logId: expect.any(String) });
});
