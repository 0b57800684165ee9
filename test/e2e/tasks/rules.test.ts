import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { compose } from '../../../src/compose.ts';
import { SPENT, type Update } from '../../../src/core/turn/update.ts';
import type { AgentSession } from '../../../src/ports/agent.ts';
import { createTasks } from '../../../src/tasks/tasks.ts';
import { changedOpen, changedPrompt } from '../support/changed-agent.ts';
import { refusedWith, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { only, promptsOf, reportLine } from './support.ts';

test('a task without a gate is done after its first turn', async () => {
  await using home = new Home();
  const tl = await home.open();
  const task = only(await tl.tasks.run({ goal: 'Say hello.' }));
  expect(task).toMatchObject({ state: 'done', progress: { turns: 1, decision: { code: 'no_gate' } } });
});

test('a program that waits for a plan is told as soon as nothing of it runs any more', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { tasks } = await tl.tasks.add([
    { name: 'a', goal: `/await ${home.path}/go` },
    { name: 'b', goal: '/fail agent_failed', after: 'a' },
    { name: 'c', goal: 'x', after: 'b' },
  ]);
  const plan = tasks[0]?.planId ?? '';
  expect(await tl.tasks.plan(plan)).toMatchObject({ id: plan, state: 'running' });
  expect(await tl.tasks.plan(plan, { signal: AbortSignal.timeout(1), waitMs: 50 })).toMatchObject({ state: 'running' });
  const waiting = tl.tasks.plan(plan, { waitMs: 60_000 });
  writeFileSync(`${home.path}/go`, '');
  expect(await waiting).toMatchObject({ state: 'needs_person', needs: [{ taskId: tasks[1]?.id }] });
  await refusedWith('not_found', tl.as('ann').tasks.plan(plan), /no plan/);
  await refusedWith('invalid', tl.tasks.plan(plan, { waitMs: -1 }), /"waitMs" must be/);
});

test('a task fails when its turns are used up', async () => {
  await using home = new Home();
  const tl = await home.open();
  const task = only(await tl.tasks.run({ goal: 'x', gate: 'false', maxIterations: 3 }));
  expect(task).toMatchObject({ state: 'failed', progress: { turns: 3, decision: { code: 'iterations_spent' } } });
});

test('if nobody answered a permission and the gate then failed, the task asks a person and does not retry', async () => {
  await using home = new Home();
  const tl = await home.open();
  const task = only(await tl.tasks.run({ goal: '/ask May I write a.txt?', gate: 'false' }));
  expect(task).toMatchObject({
    state: 'asking',
    progress: { turns: 1, denied: 1, decision: { code: 'permission_denied' } },
  });
  expect(task.progress.decision?.reason).toContain('nobody answered: "May I write a.txt?".');
  const { turns } = await tl.tasks.report(task.id);
  expect(turns).toMatchObject([{ denied: [{ title: 'May I write a.txt?', reason: 'nobody can answer here' }] }]);
  const permissions = await tl.engine.permissions({ conversation: task.progress.conversationId ?? '' });
  expect(permissions).toMatchObject([{ state: 'denied' }]);
  await tl.tasks.retry(task.id);
  expect(only(await tl.tasks.waitFor([task.id]))).toMatchObject({ state: 'asking', progress: { denied: 2 } });
});

test('a task whose permissions were denied can be retried with permissions that a person answers', async () => {
  await using home = new Home();
  const tl = await home.open();
  const goal = '/ask May I?\n/tool touch made';
  const task = only(await tl.tasks.run({ goal, gate: 'test -f allowed' }));
  expect(task.progress.decision?.reason).toContain(
    'retry it with "permissions": "ask" (--permissions ask), and answer.',
  );
  const retried = await tl.tasks.retry(task.id, { permissions: 'ask', say: '/ask May I?\n/tool touch allowed' });
  expect(retried.permissions).toBe('ask');
  const conversation = task.progress.conversationId ?? '';
  for await (const { kind, payload } of tl.engine.follow(conversation)) {
    if (kind !== 'permission.asked' || (await tl.engine.permission(payload.permissionId)).state !== 'open') continue;
    await tl.engine.answer(payload.permissionId, 'allow');
    break;
  }
  expect(only(await tl.tasks.waitFor([task.id]))).toMatchObject({ state: 'done', progress: { denied: 1 } });
});

test('no turn begins when the budget is spent, even if more turns are allowed', async () => {
  await using home = new Home();
  const tl = await home.open();
  const gate = 'echo "/usage 60 1"; exit 1';
  const task = only(await tl.tasks.run({ goal: '/usage 60 1', gate, budget: '150 tokens' }));
  expect(task).toMatchObject({ state: 'failed', progress: { turns: 3, decision: { code: 'budget_spent' } } });
  expect(await promptsOf(tl, task)).toHaveLength(3);
  const again = await tl.tasks.retry(task.id);
  expect(again.state).toBe('queued');
  expect(only(await tl.tasks.waitFor([task.id]))).toMatchObject({ state: 'failed', progress: { turns: 3 } });
  await tl.tasks.retry(task.id, { budget: '200 tokens' });
  expect(only(await tl.tasks.waitFor([task.id]))).toMatchObject({ state: 'failed', progress: { turns: 4 } });
});

/** An update that spends the whole budget, for each budget. */
const SPENDING_UPDATE = {
  $1: { sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount: 1.5, currency: 'USD' } },
  '100 tokens': { sessionUpdate: SPENT, inputTokens: 90, outputTokens: 10 },
} as const;

test.each([
  ['$1', 'work'],
  ['100 tokens', 'work'],
  ['100 tokens', 'gate'],
] as const)('a turn that spends the whole budget (%s, turn of the %s) is cancelled', async (budget, purpose) => {
  await using home = new Home();
  const costly = (session: AgentSession) =>
    changedPrompt(session, async function* (prompt) {
      for await (const event of session.prompt(prompt)) {
        yield event;
        if (event.type === 'update') yield { type: 'update', update: SPENDING_UPDATE[budget] as unknown as Update };
      }
    });
  // The first session is that of the work, the second that of the judge.
  let opened = 0;
  const applies = () => {
    opened += 1;
    return opened === (purpose === 'work' ? 1 : 2);
  };
  const engine = await home.engine({ agent: (agent) => changedOpen(agent, costly, applies) });
  const other = await compose({ home: home.path, settings: { agents: { scripted: { adapter: 'scripted' } } } });
  const tasks = createTasks({ ...other.parts, engine, settings: { ...other.parts.settings, parallel: 1 } });
  const hanging = '/say I begin.\n/hang';
  const plan =
    purpose === 'work'
      ? { goal: hanging, gate: 'true', budget }
      : { goal: '/usage 1 1', gate: { agent: 'scripted', ask: hanging }, budget };
  const task = only(await tasks.run(plan));
  expect(task).toMatchObject({ state: 'failed', progress: { decision: { code: 'budget_spent' } } });
  expect((await tasks.report(task.id)).turns.at(-1)).toMatchObject({ purpose, outcome: 'cancelled' });
  await tasks.close();
  await other.engine.close();
});

test('no judge is asked when the budget is spent; it is asked when a person has raised the budget', async () => {
  await using home = new Home({ worker: {}, judge: {} });
  const tl = await home.open();
  const plan = { goal: '/usage 60 1', agent: 'worker', gate: { agent: 'judge' }, budget: '50 tokens' };
  const task = only(await tl.tasks.run(plan));
  expect(task).toMatchObject({ state: 'failed', progress: { turns: 1, decision: { code: 'budget_spent' } } });
  expect(task.progress.decision?.reason).toMatch(/61 were used\. Its last turn was not judged\.$/);
  expect(await tl.engine.turns(`task/${task.id}/gate`)).toEqual([]);
  await tl.tasks.retry(task.id, { budget: '500 tokens' });
  await tl.tasks.waitFor([task.id]);
  expect((await tl.engine.turns(`task/${task.id}/gate`))[0]).toMatchObject({ state: 'completed' });
});

test('a task with a budget in USD asks a person if its agent reports no cost', async () => {
  await using home = new Home();
  const tl = await home.open();
  const task = only(await tl.tasks.run({ goal: 'x', gate: 'false', budget: '$1' }));
  expect(task).toMatchObject({ state: 'asking', progress: { turns: 1, decision: { code: 'cost_unknown' } } });
  expect(task.progress.decision?.reason).toContain('the agent "scripted" reports no cost');
});

test('a task with a budget in USD asks a person if its judge reports no cost, even if its agent does', async () => {
  await using home = new Home();
  const priced = (session: AgentSession) =>
    changedPrompt(session, async function* (prompt) {
      yield { type: 'usage', usage: { costMicros: 10 } };
      yield* session.prompt(prompt);
    });
  let opened = 0;
  const isFirst = () => ++opened === 1;
  const engine = await home.engine({ agent: (agent) => changedOpen(agent, priced, isFirst) });
  const other = await compose({ home: home.path, settings: { agents: { scripted: { adapter: 'scripted' } } } });
  const tasks = createTasks({ ...other.parts, engine, settings: { ...other.parts.settings, parallel: 1 } });
  const task = only(await tasks.run({ goal: 'x', gate: { agent: 'scripted' }, budget: '$1' }));
  expect(task).toMatchObject({ state: 'asking', progress: { decision: { code: 'cost_unknown' } } });
  expect(task.progress.spent.costMicros).toBe(10);
  await tasks.close();
  await other.engine.close();
});

test('after an interrupted turn the task asks a person, who can retry it with a message', async () => {
  await using home = new Home();
  const tl = await home.open();
  const task = only(await tl.tasks.run({ goal: 'The codeword is amber.\n/tool write x\n/die' }));
  expect(task).toMatchObject({ state: 'asking', progress: { turns: 1, decision: { code: 'turn_interrupted' } } });
  await tl.tasks.retry(task.id, { say: 'Never mind the end of it.' });
  const again = only(await tl.tasks.waitFor([task.id]));
  // The prompt contains the goal again, so the agent dies again. This test checks that the prompt has the message of the person.
  expect(again.state).toBe('asking');
  expect((await promptsOf(tl, task))[1]).toMatch(/^A person says: Never mind the end of it\.\n\nThe goal is still:/);
});

test('an interrupted turn is retried as often as the task allows, and each retry refers to the turn before it', async () => {
  await using home = new Home();
  const tl = await home.open();
  // That the cost of a turn is unknown does not stop the task.
  const task = only(await tl.tasks.run({ goal: '/tool write x\n/die', retryInterrupted: 2, budget: '$1' }));
  expect(task).toMatchObject({
    ...{ state: 'asking', progress: { turns: 3, iteration: 1, tries: 2, spent: { costMicros: 0, unknownCosts: 3 } } },
  });
  const { decisions } = await tl.tasks.report(task.id);
  expect(decisions.map(reportLine)).toEqual([
    'retry turn_interrupted',
    'retry turn_interrupted',
    'ask turn_interrupted',
  ]);
  const turns = await tl.engine.turns(`task/${task.id}`);
  expect(turns.map(({ retryOf }) => retryOf)).toEqual([null, turns[0]?.id, turns[1]?.id]);
});

test('after a failed turn the task asks a person, with the reason', async () => {
  await using home = new Home();
  const tl = await home.open();
  const task = only(await tl.tasks.run({ goal: '/fail agent_failed' }));
  expect(task).toMatchObject({ state: 'asking', progress: { decision: { code: 'turn_failed' } } });
  expect(task.progress.decision?.reason).toContain('failed as asked');
});

test('a task that is cancelled during a turn cancels that turn', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { tasks } = await tl.tasks.add({ goal: '/hang', gate: 'false' });
  const { id } = only(tasks);
  await until('the turn runs', async () => (await tl.engine.turns(`task/${id}`).catch(() => []))[0]?.sent != null);
  await tl.tasks.cancel(id);
  const task = only(await tl.tasks.waitFor([id]));
  expect(task).toMatchObject({ state: 'cancelled', progress: { turns: 1 } });
  const [turn] = await tl.engine.turns(`task/${id}`);
  expect(turn?.state).toBe('cancelled');
});

test('a task can be cancelled from another process', async () => {
  await using home = new Home();
  const [tl, other] = await Promise.all([home.open(), home.host()]);
  const { tasks } = await tl.tasks.add({ goal: '/hang' });
  const { id } = only(tasks);
  await until('the turn runs', async () => (await tl.engine.turns(`task/${id}`).catch(() => []))[0]?.sent != null);
  await other.tasks.cancel(id);
  expect(only(await tl.tasks.waitFor([id])).state).toBe('cancelled');
});

test('a task begins when all tasks in its "after" are done, and waits if one of them failed', async () => {
  await using home = new Home();
  const tl = await home.open();
  const plan = [
    { name: 'c', goal: 'c', after: ['a', 'b'] },
    { name: 'a', goal: 'a' },
    { name: 'b', goal: 'b', gate: 'false', maxIterations: 1 },
    { name: 'd', goal: 'd', after: 'a' },
  ];
  const [c, a, b, d] = await tl.tasks.run(plan);
  expect([a?.state, b?.state, c?.state, d?.state]).toEqual(['done', 'failed', 'waiting', 'done']);
  expect(d?.startedAt).toBeGreaterThanOrEqual(a?.endedAt ?? Number.POSITIVE_INFINITY);
});

test('the "parallel" of a plan is stored, and the process that resumes the plan observes it', async () => {
  await using home = new Home();
  const host = await home.host();
  const goals = ['/slow-tool wait effects 600000', ...Array.from({ length: 5 }, (_, i) => `${i}`)];
  const { tasks } = await host.tasks.add({ parallel: 1, tasks: goals.map((goal) => ({ goal })) });
  const running = () => home.query("SELECT no FROM tasks WHERE state = 'running'").length;
  await until('the first task runs', () => home.query("SELECT no FROM events WHERE kind = 'turn.sent'").length === 1);
  await host.kill();
  const tl = await home.open();
  await tl.tasks.resume();
  await tl.tasks.waitFor(tasks.map(({ id }) => id));
  expect(running()).toBe(0);
  const events = home.query<{ kind: string }>("SELECT kind FROM task_events WHERE kind <> 'task.added' ORDER BY no");
  const starts = events.flatMap(({ kind }, i) => (kind === 'task.started' ? [i] : []));
  // Between two starts, a task was decided or given back.
  for (const [n, at] of starts.slice(1).entries()) {
    const between = events.slice(starts[n], at).map(({ kind }) => kind);
    expect(between.some((kind) => kind === 'task.decided' || kind === 'task.queued')).toBe(true);
  }
  expect(starts).toHaveLength(goals.length + 1);
});

test('the same plan with the same request id is carried out once', async () => {
  await using home = new Home();
  const tl = await home.open();
  const plan = { goal: 'x' };
  const first = await tl.tasks.run(plan, { requestId: 'nightly' });
  const again = await tl.tasks.add(plan, { requestId: 'nightly' });
  expect(again).toEqual({ tasks: first, duplicate: true });
  await expect(tl.tasks.add({ goal: 'y' }, { requestId: 'nightly' })).rejects.toMatchObject({ code: 'conflict' });
});

test('the events of tasks are followed live, without gaps', async () => {
  await using home = new Home();
  const tl = await home.open();
  const stop = new AbortController();
  const seen: number[] = [];
  const kinds: string[] = [];
  const following = (async () => {
    for await (const event of tl.tasks.follow({ signal: stop.signal })) {
      seen.push(event.seq);
      kinds.push(event.kind);
      if (event.kind === 'task.decided') stop.abort();
    }
  })();
  await tl.tasks.run({ goal: 'x', gate: 'true' });
  await following;
  expect(seen).toEqual(seen.map((_, i) => i + 1));
  expect(kinds).toEqual(['task.added', 'task.started', 'task.opened', 'task.turned', 'task.gated', 'task.decided']);
});

test('the usage of tasks adds up, by milestone, owner and day, to what the agents reported', async () => {
  await using home = new Home();
  const tl = await home.open();
  const ann = tl.as('ann');
  await tl.tasks.run([
    { goal: '/usage 100 1', milestone: 'm' },
    { goal: '/usage 20 2', milestone: 'm' },
    { goal: '/usage 3 3', gate: 'echo "/usage 4 4"; test -f x || { touch x; false; }' },
  ]);
  await ann.tasks.run({ goal: '/usage 1000 1' });
  const rows = await tl.tasks.usage();
  const [day] = await tl.engine.usage();
  const sum = (from: typeof rows) => from.reduce((total, row) => total + row.usage.inputTokens, 0);
  expect(sum(rows)).toBe(day?.usage.inputTokens);
  expect(sum(rows)).toBe(127);
  expect(sum(rows.filter(({ milestone }) => milestone === 'm'))).toBe(120);
  expect(new Set(rows.map((row) => row.day))).toEqual(new Set([day?.day]));
  expect(sum(await ann.tasks.usage())).toBe(1000);
});
