import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { Task, Throughline } from '../../../src/index.ts';
import { identityOf } from '../../contracts/liveness.ts';
import { expectSound, until } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { only } from './support.ts';

test('a task whose runner is killed during a turn is retried in another process, as often as it allows', async () => {
  await using home = new Home();
  const host = await home.host();
  const plan = { goal: '/tool write effects\n/slow-tool wait effects 600000', retryInterrupted: 1, gate: 'true' };
  const { tasks } = await host.tasks.add(plan);
  const { id } = only(tasks);
  await until('the tool runs', () => lineCount(home, 'effects') === 2);
  await host.kill();
  const tl = await home.open();
  // It is queued for a moment, if the runner was already found dead.
  expect(await tl.tasks.resume()).toMatchObject([{ id, state: expect.stringMatching(/^(queued|running)$/) }]);
  await until('the turn was retried', () => lineCount(home, 'effects') === 4);
  await tl.tasks.cancel(id);
  const task = only(await tl.tasks.waitFor([id]));
  expect(task).toMatchObject({ state: 'cancelled', progress: { turns: 2, tries: 1 } });
  const { turns, decisions } = await tl.tasks.report(id);
  expect(turns.map(({ outcome }) => outcome)).toEqual(['interrupted', 'cancelled']);
  expect(decisions).toMatchObject([{ decision: 'retry', code: 'turn_interrupted' }]);
  await expectSound(tl.engine, `task/${id}`);
});

test('a task that allows no retry asks a person after its runner is killed, and nothing is done twice', async () => {
  await using home = new Home();
  const host = await home.host();
  const { tasks } = await host.tasks.add({ goal: '/tool write effects\n/slow-tool wait effects 600000' });
  const { id } = only(tasks);
  await until('the tool runs', () => lineCount(home, 'effects') === 2);
  await host.kill();
  const tl = await home.open();
  await tl.tasks.resume();
  expect(only(await tl.tasks.waitFor([id]))).toMatchObject({ state: 'asking', progress: { turns: 1 } });
  expect(lineCount(home, 'effects')).toBe(2);
});

test('a turn that an older version has submitted with another prompt is the turn of the task', async () => {
  await using home = new Home();
  const first = await home.open();
  const { tasks } = await first.tasks.add({ goal: `/await ${home.path}/go`, gate: 'true' });
  const { id } = only(tasks);
  await closeDuringTurn(home, first);
  const database = new DatabaseSync(home.file);
  database.prepare("UPDATE turns SET request_hash = x'00' WHERE request_id = ?").run(`task/${id}/1.1`);
  database.close();
  const second = await home.open();
  await second.tasks.resume();
  expect(only(await second.tasks.waitFor([id]))).toMatchObject({ state: 'done', progress: { turns: 1 } });
});

test('a task continues when its data file is back, and nothing is reported as a bug', async () => {
  await using home = new Home();
  const tl = await home.open({ leaseMs: 1_000 });
  const { id } = only((await tl.tasks.add({ goal: `/tool write effects\n/await ${home.path}/go` })).tasks);
  await until('the task runs', () => lineCount(home, 'effects') === 1);
  const board = (async () => {
    for await (const _ of tl.tasks.follow({ after: await tl.tasks.lastSeq() }));
  })();
  renameSync(home.file, `${home.file}.kept`);
  await expect(board).rejects.toMatchObject({ code: 'storage_gone' });
  renameSync(`${home.file}.kept`, home.file);
  writeFileSync(`${home.path}/go`, '');
  expect(only(await tl.tasks.waitFor([id]))).toMatchObject({ state: 'done', progress: { turns: 1 } });
});

test('another process can cancel a task whose runner was killed, and its turn is interrupted', async () => {
  await using home = new Home();
  const host = await home.host();
  const { tasks } = await host.tasks.add({ goal: '/slow-tool wait effects 600000' });
  const { id } = only(tasks);
  await until('the tool runs', () => lineCount(home, 'effects') === 1);
  await host.kill();
  const tl = await home.open();
  await tl.tasks.cancel(id);
  expect(only(await tl.tasks.waitFor([id]))).toMatchObject({ state: 'cancelled', progress: { turns: 1 } });
  const [turn] = await tl.engine.turns(`task/${id}`);
  expect(turn).toMatchObject({ state: 'interrupted' });
  expect(lineCount(home, 'effects')).toBe(1);
});

test('cancelling a task that was given back counts the turn that ran then, and its cost', async () => {
  await using home = new Home();
  const first = await home.open();
  const { tasks } = await first.tasks.add({ goal: `/usage 60 1\n/await ${home.path}/go`, gate: 'false' });
  const { id } = only(tasks);
  await closeDuringTurn(home, first);
  const second = await home.open({}, { takeUp: false });
  expect(await second.tasks.task(id)).toMatchObject({ state: 'queued', progress: { turns: 0 } });
  await second.tasks.cancel(id);
  expect(only(await second.tasks.waitFor([id]))).toMatchObject({ state: 'cancelled', progress: { turns: 1 } });
  const [[ofTasks], [ofAll]] = [await second.tasks.usage(), await second.engine.usage()];
  expect(ofTasks?.usage).toMatchObject({ inputTokens: 60 });
  expect(ofTasks?.usage).toEqual(ofAll?.usage);
});

test('cancelling a task whose runner was killed during the turn of a judge interrupts that turn', async () => {
  await using home = new Home();
  const host = await home.host();
  const gate = { agent: 'scripted', ask: '/slow-tool wait judged 600000' };
  const { tasks } = await host.tasks.add({ goal: 'x', gate });
  const { id } = only(tasks);
  await until('the judge is at work', () => lineCount(home, 'judged') === 1);
  await host.kill();
  const tl = await home.open();
  await tl.tasks.cancel(id);
  expect(only(await tl.tasks.waitFor([id]))).toMatchObject({ state: 'cancelled', progress: { turns: 2 } });
  const { turns } = await tl.tasks.report(id);
  expect(turns.map(({ purpose, outcome }) => `${purpose} ${outcome}`)).toEqual(['work completed', 'gate interrupted']);
  expect(lineCount(home, 'judged')).toBe(1);
});

test('the gate of a killed runner is ended, and runs again in the next process', async () => {
  await using home = new Home();
  const host = await home.host();
  const gate = 'echo $$ >> pids; test -f go && exit 0; exec sleep 3600';
  const { tasks } = await host.tasks.add({ goal: '/tool write effects', gate });
  const { id } = only(tasks);
  await until(
    'its gate is on record, and its command runs',
    () => gatePid(home) !== null && lineCount(home, 'pids') === 1,
  );
  const pid = gatePid(home) as number;
  await host.kill();
  expect(existsSync(`/proc/${pid}`)).toBe(true);
  const tl = await home.open();
  await tl.tasks.resume();
  await until('the old gate has ended', () => !existsSync(`/proc/${pid}`));
  await until('a new gate runs', () => lineCount(home, 'pids') === 2);
  await tl.tasks.cancel(id);
  expect(only(await tl.tasks.waitFor([id])).progress.turns).toBe(1);
  expect(lineCount(home, 'effects')).toBe(1);
});

test('after several kills every task is done once, in a session of its own, and nothing is left over', async () => {
  await using home = new Home({ claude: { ids: 'assigned', chunkMs: 8 } });
  const count = 8;
  const tasks = Array.from({ length: count }, (_, i) => ({
    name: `t${i}`,
    goal: `Write one line. The codeword is word-${i}. Take your time about it, and say a few words more.\n/tool write effects`,
    gate: 'test -f effects',
    retryInterrupted: 5,
  }));
  let host = await home.host();
  await host.tasks.add({ parallel: 4, tasks });
  for (let kill = 1; kill <= 3; kill += 1) {
    await until('two more turns were sent', () => sentPrompts(home) >= 2 * kill);
    await host.kill();
    host = await home.host();
    await host.tasks.resume();
  }
  const names = tasks.map(({ name }) => name);
  const done = (await host.tasks.waitFor(names)) as Task[];
  expect(done.map(({ state }) => state)).toEqual(Array(count).fill('done'));
  const reports = await Promise.all(names.map((name) => host.tasks.report(name)));
  for (const { turns, task } of reports) {
    expect(turns.filter(({ outcome }) => outcome === 'completed')).toHaveLength(1);
    expect(turns.length).toBe(task.progress.turns);
  }
  const sessions = reports.flatMap(({ turns }) => new Set(turns.map(({ sessionId }) => sessionId)).values().toArray());
  expect(new Set(sessions).size).toBe(sessions.length);
  expect(home.query("SELECT no FROM tasks WHERE state = 'running' OR worker IS NOT NULL OR gate IS NOT NULL")).toEqual(
    [],
  );
  const seqs = home.query<{ seq: number }>('SELECT seq FROM task_events ORDER BY no').map(({ seq }) => seq);
  expect(seqs).toEqual(seqs.map((_, i) => i + 1));
});

test('a runner that is closed gives its tasks back at once', async () => {
  await using home = new Home();
  const first = await home.open();
  const { tasks } = await first.tasks.add({ goal: `/await ${home.path}/go` });
  const { id } = only(tasks);
  await closeDuringTurn(home, first);
  const second = await home.open({}, { takeUp: false });
  expect(await second.tasks.task(id)).toMatchObject({ state: 'queued' });
  await second.tasks.resume();
  const task = only(await second.tasks.waitFor([id]));
  expect(task).toMatchObject({ state: 'done', progress: { turns: 1 } });
  expect(sentPrompts(home)).toBe(1);
});

/** Closes while the only turn runs. The turn ends within its grace period, after its task was given back. */
async function closeDuringTurn(home: Home, tl: Throughline): Promise<void> {
  await until('the turn runs', () => sentPrompts(home) === 1);
  const closing = tl.close({ graceMs: 60_000 });
  await until('its task was given back', () => home.query("SELECT no FROM tasks WHERE state = 'queued'").length === 1);
  writeFileSync(join(home.path, 'go'), '');
  await closing;
}

/** The number of lines of a file in the working directory of the first conversation. */
function lineCount(home: Home, name: string): number {
  const [row] = home.query<{ sandbox: string }>('SELECT sandbox FROM conversations');
  const file = join(home.sandboxes, row?.sandbox ?? '', 'work', name);
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0;
}

/** The process of the gate that the only task runs. Null: none is stored. */
function gatePid(home: Home): number | null {
  const [row] = home.query<{ gate: string | null }>('SELECT gate FROM tasks');
  return row?.gate == null ? null : identityOf(JSON.parse(row.gate)).pid;
}

/** The number of prompts that were sent to agents. */
function sentPrompts(home: Home): number {
  return home.query("SELECT no FROM events WHERE kind = 'turn.sent'").length;
}
