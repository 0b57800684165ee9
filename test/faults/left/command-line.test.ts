import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { identityOf, isAlive } from '../../contracts/liveness.ts';
import { CliHome, type Ended, parseLines, type Running } from '../../e2e/cli/process.ts';
import { serveProcess } from '../../e2e/http/support/served-process.ts';
import { until } from '../../e2e/support/conversations.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

const ENDLESS = '/stream 100000 5';

function query<T>(sql: string): T[] {
  const db = new DatabaseSync(join(home.path, 'home', 'throughline.db'), { readOnly: true, timeout: 60_000 });
  try {
    return db.prepare(sql).all() as T[];
  } finally {
    db.close();
  }
}

const states = () => query<{ state: string }>('SELECT state FROM turns ORDER BY n').map(({ state }) => state);
const turnIds = () => query<{ id: string }>('SELECT id FROM turns ORDER BY n').map(({ id }) => id);

async function kill(...running: Running[]): Promise<void> {
  for (const one of running) one.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
}

/** Kills a command in the middle of its turn. Returns the pid of its agent. */
async function killedSend(): Promise<number> {
  const sending = home.start(['send', 'notes', ENDLESS]);
  await sending.until('stdout', /chunk 2 /);
  await kill(sending);
  expect(states()).toEqual(['running']);
  const [{ process } = { process: '{}' }] = query<{ process: string }>('SELECT process FROM sessions');
  return identityOf(JSON.parse(process)).pid;
}

/** The same, with a second turn that waits for the first. */
async function killedWithQueue(): Promise<void> {
  const first = home.start(['send', 'notes', ENDLESS]);
  await first.until('stdout', /chunk 2 /);
  const second = home.start(['send', 'notes', 'The codeword is amber.']);
  await second.until('stderr', /Waiting: another process holds the conversation/);
  await kill(first, second);
  expect(states()).toEqual(['running', 'queued']);
}

test.each<[string, () => Promise<Ended>, number, (ended: Ended) => void]>([
  ['show', () => home.run('show', 'notes'), 0, ({ stdout }) => expect(stdout).toMatch(/interrupted: The program/)],
  ['summary', () => home.run('summary', 'notes'), 0, ({ stdout }) => expect(stdout).toContain('; 0 open')],
  ['list', () => home.run('list'), 0, ({ stdout }) => expect(stdout).toMatch(/notes {2}interrupted {2}1 turn, /)],
  [
    'follow',
    () => home.run('follow', 'notes', '--until-idle'),
    0,
    ({ stdout }) => expect(stdout).toContain('turn 1 interrupted'),
  ],
  [
    'doctor --fix',
    () => home.run('doctor', '--fix'),
    0,
    ({ stdout }) =>
      expect(stdout).toMatch(
        /turn 1 of conversation notes: It is running, but the process that ran it has ended\.\n {2}repaired/,
      ),
  ],
])('%s ends a turn whose command was killed, and its agent', async (_, look, code, says) => {
  const agent = await killedSend();
  const ended = await look();
  expect({ code: ended.code, stderr: ended.stderr }).toEqual({ code, stderr: '' });
  says(ended);
  expect(states()).toEqual(['interrupted']);
  expect(isAlive(agent)).toBe(false);
  expect(await home.ok('doctor')).toMatch(/^No problems found\./);
});

test('doctor without --fix reports what it found, and changes nothing', async () => {
  const agent = await killedSend();
  // It ends by itself when its input is closed. Until then the doctor finds it as well.
  await until('the agent has ended', () => !isAlive(agent));
  const looked = await home.run('doctor', '--json');
  expect(looked.code).toBe(1);
  const found = parseLines(looked.stdout).filter(({ check }) => check !== 'agents');
  expect(found.map(({ check }) => check)).toEqual(['leases', 'turns']);
  expect(states()).toEqual(['running']);
});

test('a turn whose command was killed can be tried again at once', async () => {
  await killedSend();
  const retried = home.start(['retry', turnIds()[0] ?? '']);
  await retried.until('stdout', /chunk 2 /);
  expect(states()).toEqual(['interrupted', 'running']);
  retried.kill('SIGINT');
  expect((await retried.ended).code).toBe(130);
});

test('commands that read do not run a queued turn, but say that no process runs it and what to do', async () => {
  await killedWithQueue();
  const nobody = 'No process runs turn 2 now.';
  const shown = await home.ok('show', 'notes');
  expect(shown).toContain(
    `${nobody} "throughline serve", a program that opens this data home, or the next "throughline send notes …" runs it.`,
  );
  expect(await home.ok('list')).toMatch(/notes {2}queued {2}1 turn and 1 open, .*\n {2}No process runs turn 2 now\./);
  expect(await home.ok('summary', 'notes')).toContain(nobody);
  expect((await home.show('notes')).turns).toMatchObject([{ stranded: null }, { stranded: { reason: 'no_process' } }]);
  const followed = await home.run('follow', 'notes', '--until-idle');
  expect(followed.code).toBe(7);
  expect(followed.stderr).toContain(`Stopped before the conversation was idle. ${nobody}`);
  const retried = await home.run('retry', turnIds()[1] ?? '');
  expect(retried.code).toBe(1);
  expect(retried.stderr).toContain(`The turn is still queued. ${nobody}`);
  const checked = await home.run('doctor');
  expect(checked.code).toBe(1);
  expect(checked.stdout).toContain(`turn 2 of conversation notes: ${nobody}`);
  expect(states()).toEqual(['interrupted', 'queued']);

  expect(await home.ok('send', 'notes', 'Which codewords have you seen?')).toContain('amber');
  expect(states()).toEqual(['interrupted', 'completed', 'completed']);
});

test('follow says that no process runs the open turn, and continues', async () => {
  await killedWithQueue();
  const following = home.start(['follow', 'notes']);
  await following.until('stderr', /No process runs turn 2 now\./);
  await home.ok('send', 'notes', 'Hello.');
  await following.until('stdout', /turn 3 completed/);
  following.kill('SIGINT');
  expect((await following.ended).stderr.match(/No process runs/g)).toHaveLength(1);
});

test('a question of a killed command is no longer listed, and its turn does not wait for an answer', async () => {
  const asking = home.start(['send', 'notes', '/ask write the notes\n/tool write notes.log', '--permissions', 'ask']);
  await asking.until('stderr', /Waiting for an answer/);
  await kill(asking);
  expect(states()).toEqual(['waiting']);
  expect((await home.run('permissions')).stderr).toContain('No question waits for an answer.');
  expect(states()).toEqual(['interrupted']);
});

/** Sets up one store for two data homes. Returns the options that start a command in the other one. */
function withTwoHomes() {
  const shared = { ...JSON.parse(readFileSync(home.config, 'utf8')), store: `sqlite:${join(home.path, 'shared.db')}` };
  writeFileSync(home.config, JSON.stringify(shared));
  return { env: { THROUGHLINE_HOME: join(home.path, 'other') } };
}

test('with one store and two data homes: a prompt to a conversation of the other one is refused, and the turn says where it runs', async () => {
  const other = withTwoHomes();
  const first = home.start(['send', 'notes', ENDLESS]);
  await first.until('stdout', /chunk 2 /);
  await kill(first);
  const where = `runs only at the data home ${join(home.path, 'home')}, and no process takes it up there.`;
  const sent = await home.start(['send', 'notes', 'Hello.'], other).ended;
  expect(sent.code).toBe(2);
  expect(sent.stderr).toContain(`"notes" ${where}`);
  for (const args of [['show', 'notes'], ['list'], ['summary', 'notes'], ['doctor']]) {
    expect((await home.start(args, other).ended).stdout, args.join(' ')).toContain(`Turn 1 ${where}`);
  }
  const cancelled = await home.start(['cancel', 'notes'], other).ended;
  expect(cancelled.stdout).toContain(`turn 1 was asked to stop, but has not ended yet. Turn 1 ${where}`);
  expect(await home.ok('send', 'notes', 'Hello.')).toContain('Noted');
});

test('with one store and two data homes: a command that waits for the server of the other one says when it has ended', async () => {
  const other = withTwoHomes();
  const server = await serveProcess(home);
  const first = home.start(['send', 'notes', ENDLESS]);
  await first.until('stdout', /chunk 2 /);
  const waiting = home.start(['send', 'notes', 'Hello.'], other);
  await waiting.until('stderr', /Waiting: another process holds the conversation/);
  await kill(server.running, first);
  await waiting.until('stderr', /Waiting: Turn \d runs only at the data home \S+, and no process takes it up there\./);

  const next = await serveProcess(home);
  expect(await waiting.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('Noted: Hello.') });
  next.running.kill('SIGTERM');
  await next.running.ended;
});

test('a task whose command was killed is shown as one that no process works on, and the next "task run" continues it', async () => {
  const running = home.start([
    'task',
    'run',
    `/await ${join(home.path, 'go')}`,
    '--name',
    'left',
    '--retry-interrupted',
    '1',
  ]);
  await untilTaskRuns();
  await kill(running);
  const nobody = 'queued, 0 turns of scripted. No process works on the task now. "throughline task run"';
  expect(await home.ok('task', 'list')).toContain(nobody);
  expect(await home.ok('task', 'show', 'left')).toContain(nobody);
  const [shown] = parseLines(await home.ok('task', 'show', 'left', '--json'));
  expect(shown).toMatchObject({ state: 'queued', stranded: { reason: 'no_process' } });
  writeFileSync(join(home.path, 'go'), '');
  expect(await home.ok('task', 'run')).toContain('left  done');
});

test('with one store and two data homes: "task run" does not wait for a task of the other one, and says where it runs', async () => {
  const other = withTwoHomes();
  const running = home.start(['task', 'run', ENDLESS, '--name', 'left']);
  await untilTaskRuns('shared.db');
  await kill(running);
  const where = `The task runs only at the data home ${join(home.path, 'home')}, and no process takes it up there.`;
  const waited = await home.start(['task', 'run'], other).ended;
  expect(waited.code).toBe(7);
  expect(waited.stdout).toContain(where);
  for (const args of [['list'], ['show', 'left']]) {
    expect((await home.start(['task', ...args], other).ended).stdout).toContain(where);
  }
});

async function untilTaskRuns(file = 'home/throughline.db'): Promise<void> {
  await until('the turn of the task was sent', () => {
    if (!existsSync(join(home.path, file))) return false;
    const db = new DatabaseSync(join(home.path, file), { readOnly: true, timeout: 10_000 });
    try {
      const [table] = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'turns'").all();
      return table !== undefined && db.prepare('SELECT 1 FROM turns WHERE sent IS NOT NULL').get() !== undefined;
    } finally {
      db.close();
    }
  });
}
