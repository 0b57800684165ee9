import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CliHome, parseLines, until } from './process.ts';
import { inTerminal } from './terminal.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

test('the agent works on a goal until its gate passes; the result is on stdout, the progress on stderr', async () => {
  const gate = 'test $(wc -l < log) -ge 2 || { echo "/tool append log"; exit 3; }';
  const { code, stdout, stderr } = await home.here.run(
    'task',
    'run',
    '/tool append log',
    '--gate',
    gate,
    '--name',
    'filler',
  );
  expect(stdout).toBe('filler  done, 2 turns of scripted: The gate passed: exit code 0.\n');
  expect(stderr).toContain('filler: gate: fail, exit code 3\n');
  expect(code).toBe(0);
  expect(await home.here.ok('task', 'show', 'filler')).toContain('gate          test $(wc');
  expect(await home.here.ok('task', 'usage', '--by', 'day')).toMatch(/^\d{4}-\d\d-\d\d {2}2 turns: /);
  const report = await home.here.ok('task', 'report', 'filler');
  for (const part of ['# filler: done', '## Turns', '## Sessions', '## Gate', '## Decisions', '- lock waits: 0']) {
    expect(report).toContain(part);
  }
});

test('with --json every event is a line, numbered without gaps, and the last line is the result', async () => {
  const { code, stdout } = await home.here.run(
    'task',
    'run',
    'x',
    '--gate',
    'false',
    '--max-iterations',
    '1',
    '--json',
  );
  expect(code).toBe(1);
  const lines = parseLines(stdout);
  expect(lines.at(-1)).toMatchObject({ kind: 'result', tasks: [{ state: 'failed' }] });
  const events = lines.slice(0, -1);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
  const [task] = parseLines(await home.here.ok('task', 'list', '--state', 'failed', '--json'));
  const [report] = parseLines(await home.here.ok('task', 'report', task.id, '--json'));
  expect(Object.keys(report)).toEqual(['task', 'turns', 'gates', 'decisions', 'sessions']);
  expect(report.decisions).toMatchObject([{ decision: 'give-up', code: 'iterations_spent' }]);
  expect(await home.here.lines('task', 'run')).toEqual([{ kind: 'result', tasks: [] }]);
});

test('the tasks of a file run in the order of their "after"; an error in the file is reported with its line', async () => {
  const file = join(home.path, 'tasks.yaml');
  const good = 'defaults: {gate: "true"}\ntasks:\n- {name: last, goal: x, after: first}\n- {name: first, goal: y}\n';
  writeFileSync(file, `${good}- {goal: z, colour: red}\n`);
  const bad = await home.run('task', 'run', '--file', 'tasks.yaml');
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('tasks.yaml, line 5: Unknown field "colour".')]);
  expect(await home.ok('task', 'list', '--json')).toBe('');
  writeFileSync(file, good);
  const lines = parseLines(await home.ok('task', 'run', '--file', 'tasks.yaml', '--json'));
  const { tasks } = lines.at(-1);
  expect(tasks.map(({ name, state }: { name: string; state: string }) => [name, state])).toEqual([
    ['last', 'done'],
    ['first', 'done'],
  ]);
  expect(tasks[0].startedAt).toBeGreaterThanOrEqual(tasks[1].endedAt);
  expect(await home.ok('task', 'report')).toContain('\n# All 2 tasks: done\n');
  const [last] = parseLines(await home.ok('task', 'report', '--json')).toReversed();
  expect(last).toMatchObject({ totals: { tasks: 2, turns: 2, states: { done: 2 }, verdict: 'done' } });
});

test('a denied permission is shown while the task runs, in its report and in show, with what to change', async () => {
  const { code, stdout, stderr } = await home.here.run(
    'task',
    'run',
    '/ask May I?',
    '--gate',
    'false',
    '--name',
    'denied',
  );
  expect(code).toBe(1);
  expect(stdout).toContain('Let the agent act without asking');
  expect(stderr).toMatch(/turn 1 completed \(.*\), denied: "May I\?"\n/);
  expect(await home.here.ok('task', 'show', 'denied')).toContain("denied        1 of the agent's questions");
  expect(await home.here.ok('task', 'report', 'denied')).toContain('| 1.1 | work | May I? | nobody can answer here |');
});

test('the id of a new session is refused with its line in a file, and with its flag, for an agent that issues ids', async () => {
  const file = join(home.path, 'plan.yaml');
  writeFileSync(file, 'tasks:\n- goal: x\n  newSession: task-1\n');
  const refusal = 'The agent "scripted" issues the ids of its sessions itself.';
  const inFile = await home.here.run('task', 'run', '--file', file);
  expect([inFile.code, inFile.stderr]).toEqual([2, expect.stringContaining(`plan.yaml, line 3: ${refusal}`)]);
  const byFlag = await home.here.run('task', 'run', 'x', '--new-session', 'task-1');
  expect([byFlag.code, byFlag.stderr]).toEqual([2, expect.stringContaining(refusal)]);
  expect((await home.here.run('task', 'run', '--file', file, '--new-session', 't')).stderr).toContain('needs a goal');
});

test('a plan says what needs a person, and with --wait it exits as soon as nothing runs any more', async () => {
  const file = join(home.path, 'plan.yaml');
  writeFileSync(file, 'tasks:\n- {name: a, goal: /fail agent_failed}\n- {name: b, goal: x, after: a}\n');
  await home.here.run('task', 'run', '--file', file, '--request-id', 'nightly');
  expect(await home.here.ok('task', 'show', 'a')).toContain('plan          nightly');
  const { code, stdout } = await home.here.run('task', 'plan', 'nightly', '--wait', '600');
  expect(code).toBe(1);
  const [head, a, b, need, ...rest] = stdout.trimEnd().split('\n');
  expect([head, a, b, rest]).toEqual(['nightly  needs a person', '  a  asking', '  b  waiting', []]);
  const [, hint = ''] =
    /^The task "a" asks a person: .* 1 task waits for it. "throughline (task retry [^"]+)"/.exec(need ?? '') ?? [];
  // The hint is a command that runs.
  expect((await home.here.run(...hint.replace('TEXT', 'Again.').split(' '))).stdout).toContain('a  asking');
  const found = JSON.parse(await home.here.ok('task', 'plan', 'nightly', '--json'));
  expect(found).toMatchObject({ id: 'nightly', state: 'needs_person', tasks: [{ name: 'a' }, { name: 'b' }] });
  expect((await home.here.run('task', 'plan', 'weekly')).code).toBe(4);
  // A command in a hint is about the same data, as everywhere.
  expect(await home.here.ok('task', 'plan', 'nightly', '--as', 'local')).toContain(
    '"throughline --as local task retry ',
  );
});

test.each([
  [['task', 'run', 'x', '--file', 'y'], 'Give a goal or a file'],
  [['task', 'run', '--gate', 'x'], '"--gate" needs a goal'],
  [['task', 'run', 'x', '--budget', '5'], 'A budget needs a unit'],
  [['task', 'run', 'x', '--gate', 'y', '--judge', 'scripted'], 'a gate or a judge'],
  [['task', 'run', 'x', '--cwd', 'nowhere'], 'nowhere does not exist'],
  [['task', 'run', '--file', 'nowhere.yaml'], 'nowhere.yaml does not exist.'],
  [['task', 'run', '--file', '/dev/zero'], 'has more than 8388608 bytes'],
  [['task', 'run', 'x', '--parallel', '2'], '"--parallel" needs "--file"'],
  [['task', 'run', '--parallel', '2'], '"--parallel" needs "--file"'],
  [['task', 'run', '--request-id', 'r'], '"--request-id" needs a goal or a file'],
  [['task', 'report', 'x', '--milestone', 'm'], 'Name tasks or a milestone'],
])('%j is refused with the reason', async (args, why) => {
  const { code, stdout, stderr } = await home.here.run(...args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(why);
});

test('a task that asks is retried with a message for the agent', async () => {
  const first = await home.here.run('task', 'run', '/die', '--name', 'dying');
  expect([first.code, first.stdout]).toEqual([7, expect.stringContaining('dying  asking, 1 turn')]);
  expect(await home.here.ok('task', 'show', 'dying')).toContain('throughline task retry');
  const again = await home.here.run('task', 'retry', 'dying', '--say', 'Once more.');
  expect(again.stdout).toContain('asking, 2 turns');
  expect(await home.here.ok('task', 'cancel', 'dying')).toContain('dying  cancelled');
  expect((await home.here.run('task', 'show', 'nobody')).code).toBe(4);
});

test('a retry after which other tasks can begin says how to continue with them', async () => {
  const file = join(home.path, 'tasks.yaml');
  writeFileSync(
    file,
    '- {name: a, goal: x, gate: "test -f go || { touch go; false; }", maxIterations: 1}\n- {goal: y, after: a}\n',
  );
  expect((await home.run('task', 'run', '--file', 'tasks.yaml')).code).toBe(1);
  const again = await home.run('task', 'retry', 'a');
  expect(again).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('Other tasks are queued. To continue with them, run "throughline task run"'),
  });
  expect(await home.ok('task', 'run')).toContain('y  done, 1 turn');
});

test('SIGTERM leaves a task to the next "task run", which continues it; Ctrl-C cancels it', async () => {
  const first = home.start(['task', 'run', '/hang', '--name', 'long', '--retry-interrupted', '1']);
  await until(() => sentPrompts() === 1);
  first.kill('SIGTERM');
  expect(await first.ended).toMatchObject({
    code: 7,
    stderr: expect.stringContaining('To continue the tasks, run "throughline task run"'),
  });
  const next = home.start(['task', 'run']);
  await until(() => sentPrompts() === 2);
  next.kill('SIGINT');
  const { code, stdout } = await next.ended;
  expect([code, stdout]).toEqual([130, expect.stringContaining('long  cancelled, 2 turns')]);
});

/** The number of prompts that were sent to agents, read from the database file. */
function sentPrompts(): number {
  const file = join(home.path, 'home', 'throughline.db');
  if (!existsSync(file)) return 0;
  const db = new DatabaseSync(file, { readOnly: true, timeout: 60_000 });
  try {
    return db.prepare("SELECT no FROM events WHERE kind = 'turn.sent'").all().length;
  } catch {
    return 0; // its tables do not exist yet
  } finally {
    db.close();
  }
}

test('at a terminal a bar shows the progress', async (context) => {
  const terminal = inTerminal(home, ['task', 'run', 'Say hello.', '--name', 'hello']);
  if (terminal === null) context.skip('there is no program "script" to make a terminal with');
  const ended = await terminal?.ended;
  expect(ended?.text).toMatch(/░{20} 0\/1 {2}hello \(turn 1\)/);
  expect(ended?.text).toContain('done, 1 turn of scripted');
});

test('a server runs the task when the command that added it is killed, and another command can wait for it', async () => {
  const server = home.start(['serve', '--port', '0', '--json']);
  await server.until('stdout', /"kind":"serving"/);
  const go = join(home.path, 'go-on');
  const adding = home.start(['task', 'run', `/await ${go}`, '--name', 'left', '--gate', 'true']);
  await until(() => sentPrompts() === 1);
  adding.kill('SIGKILL');
  await adding.ended;
  const listRequests = () => server.stderr.split('"operation":"listTasks"').length;
  const before = listRequests();
  const following = home.start(['task', 'run']);
  await until(() => listRequests() > before); // it has found the task, and waits for it
  writeFileSync(go, '');
  const watching = await following.ended;
  expect([watching.code, watching.stdout]).toEqual([
    0,
    'left  done, 1 turn of scripted: The gate passed: exit code 0.\n',
  ]);
  expect(sentPrompts()).toBe(1);
  const serverOption = ['--server', `unix:${join(home.path, 'home', 'server', 'socket')}`];
  expect(await home.ok('task', 'list', ...serverOption)).toBe(await home.ok('task', 'list'));
  server.kill('SIGTERM');
  expect((await server.ended).code).toBe(0);
});
