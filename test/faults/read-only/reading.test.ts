import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { backupHome } from '../../../src/backup.ts';
import { compose } from '../../../src/compose.ts';
import { codeOf } from '../../contracts/store/world.ts';
import { CliHome, parseLines } from '../../e2e/cli/process.ts';
import { PROGRAM } from '../../program.ts';
import { until } from '../harness/until.ts';
import { readOnlyDisk } from './read-only-disk.ts';

const SETTINGS = { agents: { scripted: { adapter: 'scripted' } }, defaultAgent: 'scripted' };

/** Makes a conversation of two turns. `left` is called with the path of the database while its process still has it open. */
async function told(home: string, left: (file: string) => void = () => {}): Promise<void> {
  const { engine } = await compose({ home, settings: SETTINGS, engine: { maxWarm: 0, leaseMs: 1_000 } });
  for (const words of ['The codeword is osprey', 'And the other is heron']) {
    const { turn } = await engine.submit('notes', words);
    await until('it has ended', async () => (await engine.turn(turn.id)).endedAt);
  }
  await new Promise(setImmediate); // the mark is written after the commit
  left(join(home, 'throughline.db'));
  await engine.close();
}

/** Restores the files as they were while the process ran, as a kill leaves them. */
function asAfterKill(ends: readonly string[], home: string): { keep(file: string): void; putBack(): void } {
  const kept = mkdtempSync(join(tmpdir(), 'throughline-kept-'));
  const all = ends.length === 0 ? [] : [...ends, '.highwater'];
  onTestFinished(() => rmSync(kept, { recursive: true, force: true }));
  return {
    keep: (file) => {
      for (const end of all) copyFileSync(`${file}${end}`, join(kept, `db${end}`));
    },
    putBack: () => {
      for (const end of all) copyFileSync(join(kept, `db${end}`), join(home, `throughline.db${end}`));
    },
  };
}

const CASES: readonly (readonly [string, readonly string[]])[] = [
  ['was closed', []],
  ['was killed and left its log', ['', '-wal']],
  ['was killed and left its log and the index of the log', ['', '-wal', '-shm']],
];

for (const [what, ends] of CASES) {
  test(`on a read-only disk everything can be read, and nothing written, after the last process ${what}`, async (context) => {
    const { path, makeReadOnly, makeWritable } = readOnlyDisk(context);
    const home = join(path, 'home');
    const files = asAfterKill(ends, home);
    await told(home, files.keep);
    files.putBack();
    makeReadOnly();
    const before = readdirSync(home);
    const folder = mkdtempSync(join(tmpdir(), 'throughline-backup-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const request = { home, file: join(folder, 'copy.db'), force: false, sandboxes: false };
    expect(await backupHome(request)).toMatchObject({ conversations: 1, turns: 2, broken: [] });
    const { engine, parts } = await compose({ home, settings: SETTINGS });
    expect((await engine.list()).map(({ key, head }) => [key, head])).toEqual([['notes', 2]]);
    expect((await engine.show('notes')).turns.map(({ reply }) => reply)).toEqual([
      'Noted: The codeword is osprey',
      'Noted: And the other is heron',
    ]);
    expect((await engine.export('notes')).records).toHaveLength(2);
    expect(await engine.search('heron')).toHaveLength(1);
    expect((await engine.verify('notes')).broken).toBeNull();
    expect(await engine.turns('notes')).toHaveLength(2);
    for await (const { kind, payload } of engine.follow('notes')) if (kind === 'turn.ended' && 'n' in payload) break;
    expect(await codeOf(engine.submit('notes', 'And now?'))).toBe('storage_readonly');
    expect(await codeOf(engine.ensure({ key: 'other' }))).toBe('storage_readonly');
    expect(parts.health.reasons()).toMatchObject([{ code: 'storage_readonly', unready: false }]);
    expect(readdirSync(home)).toEqual(before);
    // It becomes writable while the process runs.
    makeWritable();
    const { turn } = await engine.submit('notes', 'Which codewords have you seen?');
    await until('it has ended', async () => (await engine.turn(turn.id)).endedAt);
    expect((await engine.answerOf(turn.id)).reply).toContain('osprey');
    expect(parts.health.reasons()).toEqual([]);
    await engine.close();
  });
}

/** Leaves files as after a kill, with a log that is cut. Returns the number of the last event before the cut. */
async function cut(home: string, ends: readonly string[]): Promise<number> {
  const files = asAfterKill(['', '-wal', ...ends], home);
  let seq = 0;
  const { engine } = await compose({ home, settings: SETTINGS, engine: { maxWarm: 0, leaseMs: 1_000 } });
  for (const words of ['One', 'Two', 'Three', 'Four']) {
    const { turn } = await engine.submit('notes', words);
    await until('it has ended', async () => (await engine.turn(turn.id)).endedAt);
    seq = (await engine.list())[0]?.lastSeq ?? 0;
  }
  await new Promise(setImmediate); // the mark is written after the commit
  files.keep(join(home, 'throughline.db'));
  await engine.close();
  files.putBack();
  const log = join(home, 'throughline.db-wal');
  truncateSync(log, Math.floor(statSync(log).size * 0.7));
  return seq;
}

for (const ends of [[], ['-shm']]) {
  test(`a log that was cut is found although the data is read-only${ends.length > 0 ? ', also with the index of that log' : ''}`, async (context) => {
    const { path, makeReadOnly, makeWritable } = readOnlyDisk(context);
    const home = join(path, 'home');
    const had = await cut(home, ends);
    makeReadOnly();
    const { engine, parts } = await compose({ home, settings: SETTINGS });
    const [{ lastSeq, id } = { lastSeq: had, id: '' }] = await engine.list();
    expect(lastSeq).toBeLessThan(had);
    const lost = [{ conversationId: id, key: 'notes', had: { seq: had, turns: 4 }, has: { seq: lastSeq } }];
    const found = await parts.store.losses();
    expect(found).toMatchObject([{ kind: 'tail', conversations: lost }]);
    expect((await engine.verify('notes')).lost).toMatchObject({ had: { seq: had }, has: { seq: lastSeq } });
    expect(
      parts.health
        .reasons()
        .map(({ code }) => code)
        .sort(),
    ).toEqual(['storage_lost', 'storage_readonly']);
    expect(await codeOf(parts.store.acknowledgeLosses())).toBe('storage_readonly');
    const env = { PATH: process.env.PATH ?? '', HOME: path, THROUGHLINE_HOME: home };
    const { stdout } = spawnSync(process.execPath, [PROGRAM, 'doctor', '--no-agents'], {
      env,
      cwd: path,
      encoding: 'utf8',
    });
    expect(stdout).toContain('Stored data is missing');
    // When the data is writable, the same loss is recorded, and can be acknowledged.
    makeWritable();
    await engine.ensure({ key: 'other' });
    expect(await parts.store.losses()).toMatchObject([{ kind: 'tail', conversations: lost }]);
    await parts.store.acknowledgeLosses();
    expect(await parts.store.losses()).toEqual([]);
    await engine.close();
  });
}

test('the command line reads a data home that it must not write, and says why it does not write', async (context) => {
  if (process.getuid?.() !== 0) return context.skip('only root can start a program as another user');
  const path = mkdtempSync(join(tmpdir(), 'throughline-locked-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const home = join(path, 'home');
  await told(home);
  const uid = 65_534;
  const env = { PATH: process.env.PATH ?? '', HOME: path, THROUGHLINE_HOME: home };
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [PROGRAM, ...args], { uid, gid: uid, env, cwd: path, encoding: 'utf8' });
  for (const name of ['', ...readdirSync(home, { recursive: true, encoding: 'utf8' })]) {
    const found = join(home, name);
    chownSync(found, uid, uid);
    chmodSync(found, statSync(found).isDirectory() ? 0o500 : 0o400);
  }
  chmodSync(path, 0o755);
  if (run('--version').status !== 0) return context.skip('another user cannot read the program here');
  expect(run('list').stdout).toMatch(/^notes {2}2 turns/);
  expect(run('show', 'notes').stdout).toContain('Noted: And the other is heron');
  expect(JSON.parse(run('export', 'notes').stdout).records).toHaveLength(2);
  const refused = run('send', 'notes', 'hello');
  expect([refused.status, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/Cannot open .* for writing \(EACCES\)\. Make/),
  ]);
});

test('commands say that the file system is read-only and what to do, and doctor counts it as a problem', async (context) => {
  const { path, makeReadOnly } = readOnlyDisk(context);
  const cli = new CliHome({ scripted: { adapter: 'scripted', options: { ids: 'assigned' } } });
  onTestFinished(() => cli.remove());
  const home = join(path, 'home');
  const run = (...args: string[]) => cli.run(...args, '--home', home);
  await run('send', 'notes', 'The codeword is osprey');
  // The doctor finds such a session, although it cannot start the agent to check it.
  const db = new DatabaseSync(join(home, 'throughline.db'));
  db.exec("UPDATE sessions SET state = 'live'");
  db.close();
  makeReadOnly();

  const readOnly = (at: string) =>
    `The file system of ${at} is read-only. Mount it writable, or keep the data elsewhere: --home, or THROUGHLINE_HOME.`;
  const { stdout } = await run('doctor', '--json', '--no-agents');
  expect(parseLines(stdout)).toMatchObject([
    { check: 'writable', subject: `path ${home}`, problem: readOnly(home), remedy: null },
    { check: 'sessions' },
  ]);
  const file = join(home, 'throughline.db');
  const elsewhere = await cli.run('doctor', '--json', '--no-agents', '--store', `sqlite:${file}`);
  const unwritten = { check: 'writable', subject: `path ${file}`, problem: readOnly(file) };
  expect(parseLines(elsewhere.stdout)).toMatchObject([unwritten, { check: 'places' }, { check: 'sessions' }]);
  const examined = await run('doctor');
  expect([examined.code, examined.stdout]).toEqual([1, expect.not.stringContaining('No problems found')]);
  expect(examined.stdout).toContain(`scripted (scripted, default): ${readOnly(join(home, 'sandboxes'))}`);

  const refused = (at: string) => ({ code: 1, stdout: '', stderr: `throughline: ${readOnly(at)}\n` });
  expect(await run('serve', '--port', '0')).toMatchObject(refused(join(home, 'server')));
  expect(await run('send', 'notes', 'hello')).toMatchObject(refused(file));
  expect(await run('agents', 'install', 'claude')).toMatchObject(refused(join(home, 'agents')));
  const fresh = join(path, 'new');
  for (const command of ['list', 'doctor']) {
    expect(await cli.run(command, '--home', fresh), command).toMatchObject(refused(fresh));
    expect(await cli.run(command, '--home', path), command).toMatchObject(refused(join(path, 'throughline.db')));
  }
  const copy = join(cli.path, 'copy.db');
  await run('backup', copy);
  expect(await cli.run('restore', copy, '--store', `sqlite:${fresh}/x.db`)).toMatchObject(refused(fresh));
  const target = join(path, 'out');
  for (const args of [
    ['export', 'notes', '--output', target],
    ['backup', target],
  ]) {
    expect(await run(...args)).toMatchObject({
      code: 2,
      stderr: `throughline: Cannot write the file ${target} (EROFS). Name another file.\n`,
    });
  }
});
