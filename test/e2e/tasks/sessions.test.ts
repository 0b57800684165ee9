import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import type { Task, TaskPlan, Throughline } from '../../../src/index.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { codewordsIn, refusedWith, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { only } from './support.ts';

const words = (n: number) => Array.from({ length: n }, (_, i) => `word-${i + 1}`);
const goalWith = (word: string) => ({ goal: `The codeword is ${word}. ${WHICH_CODEWORDS}` });

/** The codewords that the session had at the end of each turn of work. */
async function codewordsByTurn(tl: Throughline, task: Task): Promise<string[][]> {
  const { turns } = await tl.tasks.report(task.id);
  const work = turns.filter(({ purpose }) => purpose === 'work');
  return Promise.all(work.map(async ({ turnId }) => codewordsIn((await tl.engine.answerOf(turnId ?? '')).reply)));
}
const sessionsOf = async (tl: Throughline, task: Task) =>
  (await tl.tasks.report(task.id)).turns.map(({ sessionId }) => sessionId);

test.each([
  ['one after another', 1],
  ['at the same time', 5],
])('ten tasks %s have ten sessions, and none has the codeword of another', async (_, parallel) => {
  await using home = new Home({ claude: { ids: 'assigned', lockMs: 60_000 } });
  const tl = await home.open({ maxWarm: 0 });
  const tasks = await tl.tasks.run({ parallel, tasks: words(10).map(goalWith) });
  expect(tasks.map(({ state }) => state)).toEqual(Array(10).fill('done'));
  expect(await Promise.all(tasks.map((task) => codewordsByTurn(tl, task)))).toEqual(words(10).map((word) => [[word]]));
  const sessions = (await Promise.all(tasks.map((task) => sessionsOf(tl, task)))).flat();
  expect(new Set(sessions).size).toBe(10);
  expect(sessions).not.toContain(null);
  expect(home.query('SELECT no FROM sessions')).toHaveLength(10);
});

const GATE = `n=$(cat n 2>/dev/null || echo 1); echo $((n + 1)) > n; echo "The codeword is gate-$n."; echo "${WHICH_CODEWORDS}"; test "$n" -ge 3`;

test.each([
  ['kept', 1],
  ['fresh', 3],
] as const)(
  '"sessions": "%s" gives %i sessions in three turns, and the last turn has everything that was said before',
  async (sessions, count) => {
    await using home = new Home();
    const tl = await home.open();
    const task = only(await tl.tasks.run({ ...goalWith('goal'), gate: GATE, sessions }));
    expect(task).toMatchObject({ state: 'done', sessions, progress: { turns: 3 } });
    expect((await codewordsByTurn(tl, task)).at(-1)).toEqual(expect.arrayContaining(['goal', 'gate-1', 'gate-2']));
    expect(new Set(await sessionsOf(tl, task)).size).toBe(count);
  },
);

test('"sessions": "blank" gives three sessions in three turns, each with only the goal and the last gate, as the receipts say', async () => {
  await using home = new Home();
  const tl = await home.open();
  const task = only(await tl.tasks.run({ ...goalWith('goal'), gate: GATE, sessions: 'blank' }));
  expect(task).toMatchObject({ state: 'done', sessions: 'blank', progress: { turns: 3 } });
  expect(await codewordsByTurn(tl, task)).toEqual([
    ['goal', 'gate-'],
    ['gate-1', 'goal'],
    ['gate-2', 'goal'],
  ]);
  expect(new Set(await sessionsOf(tl, task)).size).toBe(3);
  const receipts = await tl.engine.receipts(task.progress.conversationId ?? '');
  expect(receipts.map(({ rung, carried, dropped }) => [rung, carried, dropped])).toEqual([
    ['new', 0, 0],
    ['fresh', 0, 1],
    ['fresh', 0, 2],
  ]);
});

test.each(['kept', 'fresh', 'blank'] as const)(
  'a session that the caller names overrides "%s", and no other task uses it',
  async (sessions) => {
    await using home = new Home({ claude: { dir: '../../storage' } });
    const session = await createSession(join(home.sandboxes, 'storage'));
    const tl = await home.open();
    const plan = [
      { ...goalWith('new'), session, gate: GATE, sessions },
      { ...goalWith('next'), sessions },
    ];
    const [named, next] = (await tl.tasks.run({ parallel: 1, tasks: plan })) as [Task, Task];
    expect(new Set(await sessionsOf(tl, named))).toEqual(new Set([session]));
    expect((await codewordsByTurn(tl, named)).at(-1)).toEqual(expect.arrayContaining(['old', 'new', 'gate-2']));
    expect(await sessionsOf(tl, next)).not.toContain(session);
    expect(await codewordsByTurn(tl, next)).toEqual([['next']]);
    const again = only(await tl.tasks.run({ ...goalWith('again'), session }));
    expect(again).toMatchObject({ state: 'asking', progress: { decision: { code: 'turn_failed' } } });
    expect(await sessionsOf(tl, again)).toEqual([null]);
  },
);

test('the first turn of a task opens its session with the id that the caller chose, and later turns resume it', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const tl = await home.open({ maxWarm: 0 });
  const task = only(await tl.tasks.run({ ...goalWith('goal'), gate: GATE, newSession: 'task-1' }));
  expect(task).toMatchObject({ state: 'done', newSession: 'task-1', sessions: 'kept', progress: { turns: 3 } });
  expect(await sessionsOf(tl, task)).toEqual(['task-1', 'task-1', 'task-1']);
  expect((await codewordsByTurn(tl, task)).at(-1)).toEqual(expect.arrayContaining(['goal', 'gate-1', 'gate-2']));
  const receipts = await tl.engine.receipts(task.progress.conversationId ?? '');
  expect(receipts.map(({ rung }) => rung)).toEqual(['new', 'resume', 'resume']);
  // It is chosen once: neither another task nor a prompt can have it.
  await refusedWith('refused', tl.tasks.add({ goal: 'x', newSession: 'task-1' }), /"task-1" was used before/);
  const next = only(await tl.tasks.run(goalWith('next')));
  expect(await sessionsOf(tl, next)).not.toContain('task-1');
});

test('a task whose turn was cut off after its session was opened goes on in that session', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const host = await home.host();
  const goal = `The codeword is amber.\n/say begun\n/await ${home.path}/go\n${WHICH_CODEWORDS}`;
  const { tasks } = await host.tasks.add({ goal, newSession: 'task-1', retryInterrupted: 1 });
  const { id } = only(tasks);
  const heard = "SELECT no FROM events WHERE kind = 'turn.update' AND payload LIKE '%begun%'";
  await until('the agent works on the prompt', () => home.query(heard).length > 0);
  await host.kill();
  writeFileSync(`${home.path}/go`, '');
  const tl = await home.open();
  await tl.tasks.resume();
  const done = only(await tl.tasks.waitFor([id]));
  expect(done).toMatchObject({ state: 'done', progress: { turns: 2 } });
  expect(await sessionsOf(tl, done)).toEqual(['task-1', 'task-1']);
});

test('the id of a new session is refused at submission for an agent that issues ids, or that cannot reopen a session', async () => {
  await using home = new Home({ issues: {}, takes: { ids: 'assigned' }, forgets: { ids: 'assigned', resume: 'none' } });
  const tl = await home.open();
  const plan = (agent: string) => [
    { goal: 'x', agent: 'takes' },
    { goal: 'y', agent, newSession: 'task-1' },
  ];
  await refusedWith('refused', tl.tasks.add(plan('issues')), /\[1\]\.newSession: The agent "issues" issues the ids/);
  await refusedWith('refused', tl.tasks.add(plan('forgets')), /\[1\]\.newSession: forgets cannot reopen a session/);
  await refusedWith('invalid', tl.tasks.add({ goal: 'x', agent: 'takes', newSession: ' ' }), /newSession/);
  expect(await tl.tasks.list()).toEqual([]);
});

test('if the agent already has a session with the chosen id, the task asks, and nothing of that session is used', async () => {
  await using home = new Home({ claude: { dir: '../../storage', ids: 'assigned' } });
  const session = await createSession(join(home.sandboxes, 'storage'));
  const tl = await home.open();
  const task = only(await tl.tasks.run({ ...goalWith('new'), newSession: session }));
  expect(task).toMatchObject({ state: 'asking', progress: { decision: { code: 'turn_failed' } } });
  expect(task.progress.decision?.reason).toContain('the agent already has a session with this id');
  await tl.tasks.retry(task.id);
  const again = only(await tl.tasks.waitFor([task.id]));
  expect(again).toMatchObject({ state: 'asking', progress: { decision: { code: 'turn_failed' } } });
  expect(again.progress.decision?.reason).toContain('Choose another one (for a task: add the task again).');
  expect(await sessionsOf(tl, task)).toEqual([null, null]);
});

/** Creates a session of the agent without Throughline. Its codeword is "old". */
async function createSession(dir: string): Promise<string> {
  mkdirSync(dir, { recursive: true });
  const sandboxes = new TestSandboxes();
  try {
    const agent = scriptedAgent({ name: 'claude', options: { dir } });
    const session = await sandboxes.open(agent, await sandboxes.sandbox(), { kind: 'new', id: null });
    await ask(session, 'The codeword is old.');
    await session.close();
    return session.id ?? '';
  } finally {
    await sandboxes.dispose();
  }
}

test('a plan that can never be carried out is refused when it is added, and nothing is stored', async () => {
  await using home = new Home({ able: {}, forgetful: { resume: 'none' } });
  const tl = await home.open();
  const expectRefused = (plan: TaskPlan, why: RegExp) => refusedWith('refused', tl.tasks.add(plan), why);
  await expectRefused(
    [{ goal: 'x', agent: 'forgetful', sessions: 'kept' }],
    /\[0\]\.sessions: forgetful cannot keep a session/,
  );
  await expectRefused({ goal: 'x', agent: 'forgetful', session: 's' }, /session: forgetful cannot reopen a session/);
  await refusedWith('agent_unavailable', tl.tasks.add({ goal: 'x', agent: 'nobody' }), /There is no agent "nobody"/);
  await refusedWith(
    'agent_unavailable',
    tl.tasks.add({ goal: 'x', agent: 'able', gate: { agent: 'nobody' } }),
    /gate: There is no agent/,
  );
  await refusedWith('invalid', tl.tasks.add({ goal: 'x' }), /No agent is given/);
  const two = [
    { goal: 'x', session: 's' },
    { goal: 'y', session: 's' },
  ].map((task) => ({ ...task, agent: 'able' }));
  await refusedWith('invalid', tl.tasks.add(two), /\[1\]\.session: .* belongs to one conversation/);
  expect(await tl.tasks.list()).toEqual([]);
  expect(home.query('SELECT no FROM conversations')).toEqual([]);
  const { tasks } = await tl.tasks.add({ goal: 'x', agent: 'forgetful' });
  expect(only(tasks).sessions).toBe('fresh');
  await tl.tasks.waitFor([only(tasks).id]);
});

test('tasks of a milestone share its context: the last one has the codewords of the others', async () => {
  await using home = new Home({ claude: { ids: 'assigned' } });
  const tl = await home.open();
  const tasks = [
    { goal: 'The codeword is first.', milestone: 'm' },
    { goal: 'The codeword is aside.' },
    { goal: 'The codeword is second.', milestone: 'm' },
    { goal: WHICH_CODEWORDS, milestone: 'm' },
  ];
  const done = (await tl.tasks.run({ parallel: 4, tasks })) as [Task, Task, Task, Task];
  expect(await codewordsByTurn(tl, done[3])).toEqual([['first', 'second']]);
  expect(new Set([...(await sessionsOf(tl, done[0])), ...(await sessionsOf(tl, done[3]))]).size).toBe(1);
  expect(done[0].progress.conversationId).toBe(done[3].progress.conversationId);
  expect(done[1].progress.conversationId).not.toBe(done[0].progress.conversationId);
});

test('a task waits for its locked session, and the report counts the waits', async () => {
  await using home = new Home({ claude: { ids: 'assigned', lockMs: 600_000 } });
  const tl = await home.open({ maxWarm: 0, lock: { firstMs: 20, longestMs: 50, totalMs: 600_000 } });
  const { tasks } = await tl.tasks.add({ goal: 'x', gate: 'test -f done || { touch done; false; }' });
  const { id } = only(tasks);
  const storage = () =>
    join(
      home.sandboxes,
      home.query<{ sandbox: string }>('SELECT sandbox FROM conversations')[0]?.sandbox ?? '',
      'state',
      'scripted',
    );
  const locked = () => home.query("SELECT no FROM events WHERE kind = 'session.locked'").length > 1;
  await until('the task waits for its session', async () => locked());
  for (const name of readdirSync(storage())) if (name.endsWith('.lock')) rmSync(join(storage(), name));
  const task = only(await tl.tasks.waitFor([id]));
  expect(task).toMatchObject({ state: 'done', progress: { turns: 2 } });
  expect(task.progress.lockWaits.count).toBeGreaterThan(1);
  const { turns } = await tl.tasks.report(id);
  expect(turns.map(({ lockWaits }) => lockWaits.count > 0)).toEqual([false, true]);
  expect(turns[1]?.lockWaits).toEqual(task.progress.lockWaits);
});

test('a task that is cancelled while it waits for its session stops at once, and the report counts the waits', async () => {
  await using home = new Home({ claude: { ids: 'assigned', lockMs: 600_000 } });
  const tl = await home.open({ maxWarm: 0, lock: { firstMs: 20, longestMs: 50, totalMs: 600_000 } });
  const { tasks } = await tl.tasks.add({ goal: 'x', gate: 'false' });
  const { id } = only(tasks);
  const waits = () => home.query("SELECT no FROM events WHERE kind = 'session.locked'").length;
  await until('the task waits for its session', () => waits() > 2);
  await tl.tasks.cancel(id);
  expect(only(await tl.tasks.waitFor([id]))).toMatchObject({ state: 'cancelled', progress: { turns: 2 } });
  const { turns } = await tl.tasks.report(id);
  expect(turns.map(({ outcome, sessionId }) => [outcome, sessionId !== null])).toEqual([
    ['completed', true],
    ['cancelled', false],
  ]);
  expect(turns[1]?.lockWaits.count).toBe(waits());
  expect(turns[1]?.lockWaits.ms).toBeGreaterThan(60);
});

test('each task has a directory of its own, or the one that the caller names', async () => {
  await using home = new Home();
  const tl = await home.open();
  const cwd = join(home.path, 'project');
  mkdirSync(cwd);
  const goal = '/tool write note';
  await tl.tasks.run([{ goal }, { goal }, { goal, cwd: 'project' }], { base: home.path });
  expect(readdirSync(cwd)).toEqual(['note']);
  const works = home.query<{ sandbox: string }>('SELECT sandbox FROM conversations WHERE cwd IS NULL');
  expect(works.map(({ sandbox }) => readdirSync(join(home.sandboxes, sandbox, 'work')))).toEqual([['note'], ['note']]);
});
