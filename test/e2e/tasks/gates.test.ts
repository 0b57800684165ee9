import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compose } from '../../../src/compose.ts';
import { ThroughlineError } from '../../../src/core/errors.ts';
import type { TaskStore } from '../../../src/ports/store/tasks.ts';
import type { Store } from '../../../src/ports/store.ts';
import { createTasks } from '../../../src/tasks/tasks.ts';
import { identityOf } from '../../contracts/liveness.ts';
import { until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { only, promptsOf, reportLine } from './support.ts';

test('the agent is told each failure of a gate, in one session, until the gate passes', async () => {
  await using home = new Home();
  const tl = await home.open();
  const gate = 'n=$(wc -l < log); echo "checked $n of 3" >&2; test "$n" -ge 3 || { echo "/tool append log"; exit 7; }';
  const task = only(await tl.tasks.run({ goal: 'Fill the log.\n/tool append log', gate }));
  expect(task).toMatchObject({ state: 'done', progress: { turns: 3, decision: { code: 'gate_passed' } } });
  const prompts = await promptsOf(tl, task);
  expect(prompts[1]).toContain('failed: exit code 7');
  expect(prompts[1]).toContain('checked 1 of 3');
  expect(prompts[2]).toContain('checked 2 of 3');
  const report = await tl.tasks.report(task.id);
  expect(report.gates.map(({ result }) => result.verdict)).toEqual(['fail', 'fail', 'pass']);
  expect(report.decisions.map(reportLine)).toEqual(['retry gate_failed', 'retry gate_failed', 'done gate_passed']);
  expect(report.sessions).toMatchObject([{ turns: 3 }]);
});

test('a gate runs in the working directory of the agent, without our secret environment variables', async () => {
  await using home = new Home();
  const tl = await home.open();
  process.env.THROUGHLINE_TEST_SECRET = 'sk-secret';
  try {
    const gate = 'pwd > where; env > environment; test -f made';
    const task = only(await tl.tasks.run({ goal: 'Make it.\n/tool touch made', gate }));
    const { id: sandbox } = await tl.engine.conversation(`task/${task.id}`);
    const work = join(home.sandboxes, sandbox, 'work');
    expect(readFileSync(join(work, 'where'), 'utf8').trim()).toBe(work);
    expect(readFileSync(join(work, 'environment'), 'utf8')).not.toContain('sk-secret');
    expect(task.state).toBe('done');
  } finally {
    delete process.env.THROUGHLINE_TEST_SECRET;
  }
});

test('the command of a gate starts after its process is stored, so that a killed runner leaves none that cannot be found', async () => {
  await using home = new Home();
  const engine = await home.engine({});
  const { parts, engine: other } = await compose({ home: home.path, settings: SETTINGS });
  const commits: { ran: boolean }[] = [];
  const tasks: TaskStore = {
    ...parts.store.tasks,
    async commit(fence, change) {
      if (change.gate) {
        const { pid } = identityOf(change.gate);
        const ran = join(home.path, 'ran');
        await until('the command has run, or waits', () => existsSync(ran) || isIdle(pid));
        commits.push({ ran: existsSync(ran) });
      }
      return parts.store.tasks.commit(fence, change);
    },
  };
  const orchestrator = createTasks({
    ...parts,
    engine,
    store: { ...parts.store, tasks } as Store,
    settings: { ...parts.settings, parallel: 1 },
  });
  const task = only(await orchestrator.run({ goal: 'x', gate: `touch ${join(home.path, 'ran')}` }));
  expect(task.state).toBe('done');
  expect(commits).toEqual([{ ran: false }]);
  await orchestrator.close();
  await other.close();
});

test('a task asks a person if the directory of its gate cannot be opened, because a retry would fail as well', async () => {
  await using home = new Home();
  const engine = await home.engine({});
  const { parts, engine: other } = await compose({ home: home.path, settings: SETTINGS });
  const open = () => Promise.reject(new ThroughlineError('storage_readonly', 'It cannot be made.'));
  const sandboxes = { ...parts.sandboxes, open };
  const settings = { ...parts.settings, parallel: 1 };
  const orchestrator = createTasks({ ...parts, engine, sandboxes, settings });
  const task = only(await orchestrator.run({ goal: 'x', gate: 'true' }));
  expect(task).toMatchObject({ state: 'asking', progress: { turns: 1, decision: { code: 'gate_broken' } } });
  expect(task.progress.decision?.reason).toContain('It cannot be made.');
  await orchestrator.close();
  await other.close();
});

const SETTINGS = { agents: { scripted: { adapter: 'scripted' } } };

/** Whether the process sleeps and has no child process. */
function isIdle(pid: number): boolean {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') S ') && children === '';
}

test('the agent is told the end of a long output, and how much was left out', async () => {
  await using home = new Home();
  const tl = await home.open();
  const gate = 'for i in $(seq 1 20000); do echo "line $i"; done; exit 1';
  const task = only(await tl.tasks.run({ goal: 'x', gate, maxIterations: 2 }));
  const [, prompt] = await promptsOf(tl, task);
  expect(prompt).toContain('line 20000\n');
  expect(prompt).not.toContain('line 1\n');
  expect(prompt).toMatch(/\[\d{5,} characters before this are left out\]/);
  expect(prompt?.length).toBeLessThan(20_000);
});

test('a gate that takes too long is ended with all processes that it started, and counts as failed', async () => {
  await using home = new Home();
  const tl = await home.open();
  const gate = { command: 'sleep 3600 & echo $! > pid; trap "" TERM; wait; wait', timeout: 3 };
  const task = only(await tl.tasks.run({ goal: 'x', gate, maxIterations: 1 }));
  expect(task).toMatchObject({ state: 'failed', progress: { decision: { code: 'iterations_spent' } } });
  const { gates } = await tl.tasks.report(task.id);
  expect(gates[0]?.result).toMatchObject({ verdict: 'fail', summary: 'timed out after 3 s' });
  await untilBackgroundEnded(home, task.progress.conversationId);
});

test('a cancel ends the gate and all processes that it started', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { tasks } = await tl.tasks.add({ goal: 'x', gate: 'sleep 3600 & echo $! > pid; wait' });
  const { id } = only(tasks);
  await until('the gate runs', async () => {
    const { progress } = await tl.tasks.task(id);
    if (progress.conversationId === null) return false;
    const file = await pidFile(home, progress.conversationId);
    return existsSync(file) && readFileSync(file, 'utf8') !== '';
  });
  await tl.tasks.cancel(id);
  const task = only(await tl.tasks.waitFor([id]));
  expect(task).toMatchObject({ state: 'cancelled', progress: { turns: 1 } });
  await untilBackgroundEnded(home, task.progress.conversationId);
});

test('a judge whose answer is no verdict is asked once more; then the task asks a person', async () => {
  await using home = new Home({ worker: {}, judge: {} });
  const tl = await home.open();
  const plan = { goal: 'x', agent: 'worker', gate: { agent: 'judge', ask: '/say It is fine.' } };
  const task = only(await tl.tasks.run(plan));
  expect(task).toMatchObject({ state: 'asking', progress: { turns: 3, decision: { code: 'gate_broken' } } });
  expect(task.progress.decision?.reason).toContain('it is not a JSON object');
  const gateTurns = await tl.engine.turns(`task/${task.id}/gate`);
  expect(gateTurns).toHaveLength(2);
});

test('a task whose working directory was deleted before it starts asks a person, and nothing is sent', async () => {
  await using home = new Home();
  const tl = await home.open();
  const directory = join(home.path, 'there');
  mkdirSync(directory);
  const [first, second] = await tl.tasks.run([
    { name: 'first', goal: 'x', gate: `rmdir ${directory}` },
    { goal: 'x', cwd: directory, after: 'first' },
  ]);
  expect(first?.state).toBe('done');
  expect(second).toMatchObject({ state: 'asking', progress: { turns: 0, decision: { code: 'task_failed' } } });
  expect(second?.progress.decision?.reason).toMatch(/there does not exist\. Create it first/);
});

test('a working directory that does not exist is refused, and nothing is stored', async () => {
  await using home = new Home();
  const tl = await home.open();
  const file = join(home.path, 'file');
  writeFileSync(file, '');
  await expect(tl.tasks.add({ goal: 'x', cwd: join(home.path, 'none') })).rejects.toMatchObject({
    code: 'refused',
    message: `cwd: The working directory ${join(home.path, 'none')} does not exist.`,
  });
  await expect(tl.tasks.add({ goal: 'x', cwd: file })).rejects.toThrow('is not a directory');
  expect(await tl.tasks.list()).toEqual([]);
});

/** The file into which the gate writes the pid of its background process. */
async function pidFile(home: Home, conversation: string | null): Promise<string> {
  const [row] = home.query<{ sandbox: string }>('SELECT sandbox FROM conversations WHERE id = ?', conversation ?? '');
  return join(home.sandboxes, row?.sandbox ?? '', 'work', 'pid');
}

/** Waits until the background process of the gate has ended. A zombie has ended, too. */
async function untilBackgroundEnded(home: Home, conversation: string | null): Promise<void> {
  const pid = Number(readFileSync(await pidFile(home, conversation), 'utf8'));
  expect(pid).toBeGreaterThan(1);
  await until('the background process has ended', async () => {
    try {
      process.kill(pid, 0);
      return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    } catch {
      return true;
    }
  });
}
