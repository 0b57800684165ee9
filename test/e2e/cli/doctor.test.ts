import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemProcesses } from '../../../src/host/processes.ts';
import { identityOf, isAlive } from '../../contracts/liveness.ts';
import { startSshd, whyNoSshd } from '../../contracts/sandbox/sshd.ts';
import { damagePages } from '../../faults/damage/damaged-page.ts';
import { PROGRAM } from '../../program.ts';
import { CliHome, parseLines, preload, until } from './process.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome({ scripted: { adapter: 'scripted', options: { ids: 'assigned' } } });
});
afterEach(() => home.remove());

const at = (...path: string[]) => join(home.path, 'home', ...path);

function query(sql: string): Record<string, string | null>[] {
  if (!existsSync(at('throughline.db'))) return [];
  const db = new DatabaseSync(at('throughline.db'), { readOnly: true, timeout: 60_000 });
  try {
    return db.prepare(sql).all() as Record<string, string | null>[];
  } catch {
    return []; // its tables do not exist yet
  } finally {
    db.close();
  }
}

/** The findings. The lines about agents, which come after them, are left out. */
const findingsIn = (text: string) => parseLines(text).filter(({ check }) => check !== 'agents');
const checksOf = (lines: { check: string }[]) => lines.map(({ check }) => check);

test('doctor reports a database that is too damaged to be opened, and says what to do', async () => {
  await home.here.ok('send', 'notes', 'Hello.');
  damagePages(at('throughline.db'), 'facts', 'clock:');
  expect((await home.here.run('list')).code).toBe(1);
  const { code, stdout } = await home.here.run('doctor', '--json', '--no-agents');
  expect(code).toBe(1);
  expect(parseLines(stdout)).toMatchObject([
    {
      check: 'file',
      subject: 'database',
      problem: expect.stringMatching(/cannot be opened: .*malformed.*restore FILE/),
    },
  ]);
});

test('doctor says that it found no problems', async () => {
  // Its process has ended, so an agent that it left would be found.
  await home.ok('send', 'notes', 'Hello.');
  expect(await home.here.ok('doctor')).toMatch(/^No problems found\.\nscripted \(scripted, default\): version /);
});

test('doctor finds the lease, the task and the gate of a killed process; --fix frees, queues and ends them', async () => {
  // The process of a gate is stored before its command begins.
  const begun = join(home.path, 'gate-begun');
  const running = home.start(['task', 'run', 'Hello.', '--gate', `touch '${begun}'; sleep 3600`]);
  await until(() => existsSync(begun));
  const { pid } = identityOf(JSON.parse(query('SELECT gate FROM tasks')[0]?.gate ?? 'null'));
  running.kill('SIGKILL');
  await running.ended;
  // The agent ends by itself when its input is closed. Until then doctor would find it, too.
  for (const { sent } of query('SELECT sent FROM turns')) {
    const agent = identityOf(JSON.parse(sent ?? 'null')?.process);
    await until(() => !isAlive(agent.pid));
  }

  const report = await home.here.run('doctor', '--json');
  expect(report.code).toBe(1);
  const found = findingsIn(report.stdout);
  expect(checksOf(found)).toEqual(['leases', 'tasks', 'processes']);
  expect(found.every(({ repaired, remedy }) => !repaired && remedy !== null)).toBe(true);
  expect(isAlive(pid)).toBe(true);

  const text = await home.here.ok('doctor', '--fix');
  expect(text).toMatch(/has ended and still holds conversations\.\n {2}repaired: End what it left running/);
  expect(isAlive(pid)).toBe(false);
  expect(query('SELECT state, worker FROM tasks')).toEqual([{ state: 'queued', worker: null }]);
  expect(await home.here.ok('doctor')).toMatch(/^No problems found\.\nscripted \(scripted, default\): version /);
});

test('the repair of a session without a process depends on its agent, and on whether another session replaced it', async () => {
  writeFileSync(
    home.config,
    JSON.stringify({
      defaultAgent: 'scripted',
      agents: {
        scripted: { adapter: 'scripted', options: { ids: 'assigned' } },
        forgetful: { adapter: 'scripted', options: { memory: 'process', resume: 'none' } },
      },
    }),
  );
  for (const agent of ['scripted', 'forgetful']) await home.here.ok('send', agent, 'Hello.', '--agent', agent);
  const db = new DatabaseSync(at('throughline.db'));
  const columns = 'owner, conv, origin, watermark, dropped, turns, usage, opened_at, used_at, storage';
  db.exec(`INSERT INTO sessions (${columns}, ref, id, agent, state, used_seq)
    SELECT ${columns}, 'older', 'older', agent, 'live', 0 FROM sessions WHERE agent = 'scripted'
    UNION ALL SELECT ${columns}, 'gone', 'gone', 'gone', 'live', 0 FROM sessions WHERE agent = 'scripted'`);
  db.exec("UPDATE sessions SET state = 'live'");
  db.close();
  const lines = findingsIn(await home.here.ok('doctor', '--fix', '--json'));
  expect(lines.map(({ check, remedy }) => [check, remedy.split(':')[0]])).toEqual([
    ['sessions', 'Record it as dormant'],
    ['sessions', 'Record it as lost'],
    ['sessions', 'Close the record'],
    ['sessions', 'Record it as dormant'],
  ]);
  expect(lines[1].remedy).toContain('forgetful cannot open it again');
  expect(lines[3].remedy).toContain('if gone is available');
  expect(query('SELECT state FROM sessions ORDER BY no').map(({ state }) => state)).toEqual([
    ...['dormant', 'lost', 'closed', 'dormant'],
  ]);
});

test('--fix closes a session in which no turn ever ran, and makes one with turns resumable', async () => {
  await home.here.ok('send', 'notes', 'The codeword is amber.');
  const db = new DatabaseSync(at('throughline.db'));
  db.exec("UPDATE sessions SET state = 'live'");
  db.exec(
    `INSERT INTO sessions (owner, conv, ref, id, agent, origin, watermark, dropped, state, turns, usage, opened_at, used_at, used_seq, storage)
     SELECT owner, conv, 'other', 'never-used', agent, 'new', 0, 0, 'live', 0, usage, 0, 0, 0, storage FROM sessions`,
  );
  db.close();
  const lines = findingsIn(await home.here.ok('doctor', '--fix', '--json'));
  expect(checksOf(lines)).toEqual(['sessions', 'sessions']);
  expect(lines[1].problem).toContain('no turn ever ran in it');
  expect(query('SELECT state FROM sessions ORDER BY no')).toEqual([{ state: 'dormant' }, { state: 'closed' }]);
  expect(await home.here.ok('send', 'notes', 'Which codewords have you seen?')).toContain('amber');
});

test('--fix ends an agent that no worker holds, with all processes that it started; without --fix they stay', async () => {
  await home.here.ok('send', 'notes', 'Hello.');
  const agent = spawn('sh', ['-c', 'sleep 3600 & echo $!; wait'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [started] = (await once(agent.stdout, 'data')) as [Buffer];
  const pids = [agent.pid as number, Number(started.toString())];
  try {
    const db = new DatabaseSync(at('throughline.db'));
    // In the format of older versions.
    db.prepare('UPDATE sessions SET process = ?').run(JSON.stringify(systemProcesses.identify(agent.pid as number)));
    db.close();
    const report = findingsIn((await home.here.run('doctor', '--json')).stdout);
    expect(report).toMatchObject([{ check: 'processes', process: `process ${agent.pid}`, repaired: false }]);
    expect(report[0].subject).toMatch(/^session \S+ of conversation \S+$/);
    expect(report[0].problem).toBe('Its agent, scripted, still runs, and no worker holds it any more.');
    expect((await home.here.run('doctor')).stdout).toContain(` (process ${agent.pid}): Its agent`);
    expect(pids.map(isAlive)).toEqual([true, true]);
    expect(checksOf(findingsIn(await home.here.ok('doctor', '--fix', '--json')))).toEqual(['processes']);
    expect(pids.map(isAlive)).toEqual([false, false]);
  } finally {
    if (isAlive(pids[0] as number)) process.kill(-(agent.pid as number), 'SIGKILL');
  }
});

test('an empty home has nothing to repair', async () => {
  expect(await home.here.ok('doctor', '--fix')).toMatch(/^No problems found\.\n/);
  expect(findingsIn(await home.here.ok('doctor', '--fix', '--json'))).toEqual([]);
});

test('--fix moves a sandbox of no conversation aside with its files, and leaves directories that are no sandboxes', async () => {
  await home.here.ok('send', 'notes', 'Hello.');
  const orphan = '0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398';
  mkdirSync(at('sandboxes', orphan, 'work'), { recursive: true });
  writeFileSync(at('sandboxes', orphan, 'work', 'precious'), 'kept');
  mkdirSync(at('sandboxes', 'mine'));
  const [conversation] = query('SELECT sandbox FROM conversations');
  expect(await home.here.ok('doctor', '--fix')).toContain('It belongs to no conversation.');
  expect(readFileSync(at('aside', orphan, 'work', 'precious'), 'utf8')).toBe('kept');
  expect(readdirSync(at('sandboxes')).toSorted()).toEqual([conversation?.sandbox ?? '', 'mine'].toSorted());
});

test('--fix leaves the sandbox of a conversation that begins while it runs', async () => {
  await home.here.ok('send', 'notes', 'Hello.');
  // Starts the conversation when doctor lists the sandboxes.
  const sendMeanwhile = `const { readdir } = fs.promises;
    let begun = false;
    fs.promises.readdir = (path, ...rest) => {
      if (!begun && String(path).endsWith('/sandboxes')) {
        begun = true;
        const { NODE_OPTIONS, ...env } = process.env;
        process.getBuiltinModule('node:child_process').execFileSync(process.execPath, [process.argv[1], 'send', 'late', 'Hello.'], { env });
      }
      return readdir(path, ...rest);
    };
    syncBuiltinESMExports();`;
  const doctor = home.start(['doctor', '--fix', '--no-agents'], { env: preload('doctor', sendMeanwhile) });
  expect(await doctor.ended).toMatchObject({ code: 0, stdout: 'No problems found.\n' });
  const sandboxes = query('SELECT sandbox FROM conversations').map(({ sandbox }) => sandbox);
  expect([sandboxes.length, readdirSync(at('sandboxes')).toSorted()]).toEqual([2, sandboxes.toSorted()]);
});

test('--fix deletes the directory of a killed probe of an agent, if it is old', async () => {
  const [old, young] = ['.probe-old', '.probe-young'].map((name) => at('sandboxes', name));
  for (const path of [old, young]) mkdirSync(join(path ?? '', 'work'), { recursive: true });
  const twoDaysAgo = Date.now() / 1_000 - 2 * 86_400;
  utimesSync(old ?? '', twoDaysAgo, twoDaysAgo);
  const { code, stdout } = await home.here.run('doctor');
  expect([code, stdout]).toEqual([1, expect.stringContaining(`directory ${old}: It was created to probe an agent`)]);
  expect(await home.here.ok('doctor', '--fix')).toContain('repaired: Delete it.');
  expect(readdirSync(at('sandboxes'))).toEqual(['.probe-young']);
});

test('sandboxes of no conversation on another machine are listed, and deleted only on request; an unreachable machine is no problem', async (context) => {
  const why = whyNoSshd();
  if (why !== null) context.skip(why);
  const orphan = '0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398';
  const settings = JSON.parse(readFileSync(home.config, 'utf8'));
  const machine = await startSshd();
  const findings = async () => findingsIn(await home.here.ok('doctor', '--no-agents', '--json'));
  try {
    const { root } = machine.sandbox;
    const work = join(root, orphan, 'work');
    mkdirSync(work, { recursive: true });
    mkdirSync(join(root, 'mine'));
    writeFileSync(join(work, 'precious'), 'kept');
    writeFileSync(home.config, JSON.stringify({ ...settings, sandbox: machine.sandbox }));
    await home.here.ok('send', 'notes', 'Hello.');
    const subject = `sandbox ${orphan} in ${root}`;
    const finding = { check: 'sandboxes', subject, isNote: true, repairedBy: '--delete-left-over' };
    expect(await findings()).toMatchObject([finding]);
    expect(findingsIn(await home.here.ok('doctor', '--fix', '--no-agents', '--json'))).toMatchObject([finding]);
    const deleteLeftOver = async () => {
      const { code, stdout } = await home.here.run('doctor', '--delete-left-over', '--no-agents');
      return [code, stdout];
    };
    const notDeleted = (why: string) => [1, expect.stringContaining(`not repaired: ${why}`)];
    expect(await deleteLeftOver()).toEqual(notDeleted('Unsaved work is in the sandbox: the file precious'));
    rmSync(join(work, 'precious'));
    const [agent, elsewhere] = [
      spawn('sleep', ['3600'], { cwd: work }),
      spawn('sleep', ['3600'], { env: { THROUGHLINE_MARK: 'another', CONFIG: join(root, orphan, 'state') } }),
    ];
    for (const running of [agent, elsewhere]) {
      try {
        expect(await deleteLeftOver()).toEqual(notDeleted('The sandbox is in use: the process '));
        expect(existsSync(work)).toBe(true);
      } finally {
        running.kill('SIGKILL');
        await once(running, 'exit');
      }
    }
    expect(await deleteLeftOver()).toEqual([0, expect.stringContaining('done: Delete it')]);
    expect(readdirSync(root)).toHaveLength(2);
    expect(readdirSync(root)).toContain('mine');
    expect(await findings()).toEqual([]);
    expect(await home.here.ok('send', 'notes', 'Which codewords have you seen?')).not.toBe('');
  } finally {
    await machine[Symbol.asyncDispose]();
  }
  expect(await findings()).toMatchObject([{ subject: 'sandboxes on other machines', isNote: true }]);
});

test('the sandbox of an erased conversation is listed, and is no problem', async () => {
  await home.here.ok('send', 'notes', 'The codeword is swordfish.');
  const erasing = await home.here.run('erase', 'notes', '--yes');
  const [, id = ''] = /Its id was (\S+)\./.exec(erasing.stdout) ?? [];
  const remedy = `"throughline erase ${id} --sandbox --yes" deletes it.`;
  expect(erasing.stderr).toContain(`Still there: the sandbox ${at('sandboxes', id)}. ${remedy}`);
  const listed = await home.here.ok('doctor', '--fix');
  expect(listed).toContain(
    `directory ${at('sandboxes', id)}: The conversation ${id} was erased. What its agents wrote`,
  );
  expect(listed).toContain('No problems found.');
  expect(listed).toContain(remedy);
  // The same command as the shell can run it, for the same data.
  const elsewhere = { env: { PATH: process.env.PATH ?? '', THROUGHLINE_HOME: '' } };
  const { stdout } = await home.start(['doctor', '--no-agents', '--home', at()], elsewhere).ended;
  expect(stdout).toContain(`"${PROGRAM} --home ${at()} erase ${id} --sandbox --yes" deletes it.`);
  expect(findingsIn(await home.here.ok('doctor', '--json'))).toMatchObject([
    { check: 'erased', isNote: true, remedy: null },
  ]);
  expect(existsSync(at('sandboxes', id))).toBe(true);
});

/** Kills "erase --sandbox" when it would delete the directory of the sandbox. Returns a file in it. */
async function erasureIsKilled(): Promise<string> {
  await home.here.ok('send', 'notes', 'The codeword is swordfish.');
  const [conversation] = query('SELECT sandbox FROM conversations');
  const work = at('sandboxes', conversation?.sandbox ?? '', 'work');
  writeFileSync(join(work, 'file'), '');
  const killAtDelete = `const { rm } = fs.promises;
    fs.promises.rm = (path, ...rest) => {
      if (String(path).includes('${conversation?.sandbox}')) process.kill(process.pid, 'SIGKILL');
      return rm(path, ...rest);
    };
    syncBuiltinESMExports();`;
  const erasing = home.start(['erase', 'notes', '--sandbox', '--yes'], { env: preload('erase', killAtDelete) });
  expect(await erasing.ended).toMatchObject({ signal: 'SIGKILL' });
  expect(query('SELECT 1 FROM erasures')).toHaveLength(1);
  return join(work, 'file');
}

test('a killed "erase --sandbox" is finished by the next command that works with the data, and not by one that reads', async () => {
  const file = await erasureIsKilled();
  await home.here.ok('list');
  expect(existsSync(file)).toBe(true);
  await home.here.ok('send', 'other', 'Hello.');
  const [other] = query("SELECT sandbox FROM conversations WHERE owner <> ''");
  expect(readdirSync(at('sandboxes'))).toEqual([other?.sandbox]);
  expect(query('SELECT 1 FROM erasures WHERE sandbox = 1')).toEqual([]);
});

test('a killed "erase --sandbox" is finished by the next server', async () => {
  await erasureIsKilled();
  const server = home.start(['serve', '--port', '0']);
  await server.until('stdout', /serves at/);
  await until(() => readdirSync(at('sandboxes')).length === 0);
  server.kill('SIGTERM');
  await server.ended;
  expect(findingsIn(await home.here.ok('doctor', '--json'))).toEqual([]);
});

test('doctor finds what a killed "erase --sandbox" has not deleted, and --fix deletes it', async () => {
  const file = await erasureIsKilled();
  expect(existsSync(file)).toBe(true);
  const report = await home.here.run('doctor');
  expect([report.code, report.stdout]).toEqual([
    1,
    expect.stringContaining('should have been deleted with the conversation'),
  ]);
  expect(await home.here.ok('doctor', '--fix')).toContain('but still exists.\n  repaired: Delete it.');
  expect(readdirSync(at('sandboxes'))).toEqual([]);
  expect(await home.here.ok('doctor')).toMatch(/^No problems found\./);
});

test('erase --sandbox leaves nothing that doctor could find', async () => {
  await home.ok('send', 'notes', 'The codeword is swordfish.');
  const [{ conversationId: erased, remains }] = await home.here.lines('erase', 'notes', '--sandbox', '--yes');
  expect([readdirSync(at('sandboxes')), remains]).toEqual([[], []]);
  expect(findingsIn(await home.here.ok('doctor', '--json'))).toEqual([]);
  expect(await home.here.ok('verify', erased)).toMatch(/^intact/);
});

test('--fix moves no sandbox in a directory that other data homes may use, too', async () => {
  const [root, orphan] = [join(home.path, 'shared'), '0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398'];
  mkdirSync(join(root, orphan), { recursive: true });
  const settings = JSON.parse(readFileSync(home.config, 'utf8'));
  writeFileSync(home.config, JSON.stringify({ ...settings, sandbox: { root } }));
  const { code, stdout } = await home.here.run('doctor', '--fix');
  expect([code, stdout]).toEqual([1, expect.stringContaining('it may belong to one of another data home')]);
  expect(readdirSync(root)).toEqual([orphan]);
});

test('--fix does not overwrite a sandbox that was moved aside before, and reports one that it cannot move', async () => {
  const orphan = '0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398';
  for (const word of ['first', 'second']) {
    mkdirSync(at('sandboxes', orphan), { recursive: true });
    writeFileSync(at('sandboxes', orphan, 'precious'), word);
    await home.here.ok('doctor', '--fix');
  }
  const kept = readdirSync(at('aside')).map((name) => readFileSync(at('aside', name, 'precious'), 'utf8'));
  expect(kept.toSorted()).toEqual(['first', 'second']);
  rmSync(at('aside'), { recursive: true });
  writeFileSync(at('aside'), 'in the way');
  mkdirSync(at('sandboxes', orphan));
  const { code, stdout } = await home.here.run('doctor', '--fix');
  expect(code).toBe(1);
  expect(stdout).toMatch(/not repaired: Cannot move it there: .*EEXIST.* Move it by hand\./);
  expect(existsSync(at('sandboxes', orphan))).toBe(true);
});

test('doctor explains a task that waits for a failed one, and leaves it to a person', async () => {
  writeFileSync(
    join(home.path, 'tasks.yaml'),
    '- {name: a, goal: x, gate: "false", maxIterations: 1}\n- {name: b, goal: y, after: a}\n',
  );
  expect((await home.run('task', 'run', '--file', 'tasks.yaml')).code).toBe(1);
  const { code, stdout } = await home.run('doctor', '--fix');
  expect(code).toBe(1);
  expect(stdout).toMatch(/^task \S+: It waits for \S+, which failed or was cancelled/);
});
