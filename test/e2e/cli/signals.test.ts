import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, test } from 'vitest';
import { identityOf } from '../../contracts/liveness.ts';
import { CliHome, until } from './process.ts';

const home = new CliHome();
afterAll(() => home.remove());

const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** The agent process of the last turn. Only the database has it. */
async function agentPid(key: string): Promise<number> {
  const { id } = (await home.show(key)).turns.at(-1);
  using database = new DatabaseSync(join(home.path, 'home', 'throughline.db'), { readOnly: true, timeout: 60_000 });
  const { sent } = database.prepare('SELECT sent FROM turns WHERE id = ?').get(id) as { sent: string };
  return identityOf(JSON.parse(sent).process).pid;
}

describe('Ctrl-C', () => {
  test('cancels the turn, keeps what was said, and ends the agent', async () => {
    const running = home.start(['send', 'once', '/say begun\n/hang']);
    await running.until('stdout', /begun/);
    const pid = await agentPid('once');
    expect(alive(pid)).toBe(true);
    running.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 130, stdout: 'begun\n' });
    expect((await home.show('once')).turns[0]).toMatchObject({ state: 'cancelled', reply: 'begun' });
    expect(alive(pid)).toBe(false);
    expect(await home.ok('send', 'once', 'hello')).toBe('Noted: hello\n');
  });

  test('at the moment when a turn is accepted cancels it, so that the next command does not run it', async () => {
    await home.ok('send', 'moment', 'hello');
    using database = new DatabaseSync(join(home.path, 'home', 'throughline.db'), { readOnly: true, timeout: 60_000 });
    const accepted = database.prepare(
      'SELECT count(*) AS turns FROM turns WHERE conv = (SELECT no FROM conversations WHERE key = ?)',
    );
    for (const already of [1, 2, 3]) {
      const running = home.start(['send', 'moment', '/say begun\n/hang']);
      await until(() => (accepted.get('moment') as { turns: number }).turns > already, 1);
      running.kill('SIGINT');
      expect((await running.ended).code).toBe(130);
    }
    const { turns } = await home.show('moment');
    for (const { n, state } of turns.slice(1)) expect({ n, state }).toEqual({ n, state: 'cancelled' });
  });

  test('pressed twice ends the command at once, also with an agent that does not stop', async () => {
    const running = home.start(['send', 'twice', '/say begun\n/hang!']);
    await running.until('stdout', /begun/);
    const pid = await agentPid('twice');
    running.kill('SIGINT');
    await running.until('stderr', /Press Ctrl-C again to kill/);
    running.kill('SIGINT');
    expect((await running.ended).code).toBe(130);
    await until(() => !alive(pid)); // it was signalled, and the command did not wait for its end
    expect((await home.run('send', 'twice', 'hello')).stdout).toBe('Noted: hello\n');
  });

  test('cancels a turn that waits for another process', async () => {
    const first = home.start(['send', 'other', '/say first\n/hang']);
    await first.until('stdout', /first/);
    const second = home.start(['send', 'other', '/say second', '--json']);
    await second.until('stdout', /turn\.queued/);
    second.kill('SIGINT');
    expect((await second.ended).code).toBe(130);
    first.kill('SIGINT');
    expect((await first.ended).code).toBe(130);
    expect((await home.show('other')).turns.map((turn: { state: string }) => turn.state)).toEqual([
      'cancelled',
      'cancelled',
    ]);
  });

  test('ends "follow"', async () => {
    await home.ok('send', 'watched', 'hello');
    const running = home.start(['follow', 'watched']);
    await running.until('stdout', /turn 1 completed/);
    running.kill('SIGINT');
    expect((await running.ended).code).toBe(130);
  });
});

describe('SIGTERM', () => {
  test('lets a turn end that ends within the grace period', async () => {
    const running = home.start(['send', 'ending', '/stream 10 10']);
    await running.until('stdout', /chunk 1/);
    running.kill('SIGTERM');
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(stdout).toContain('chunk 10');
    expect((await home.show('ending')).turns[0]).toMatchObject({ state: 'completed' });
  });

  test('interrupts a turn that does not end, and leaves no agent running', async () => {
    const running = home.start(['send', 'endless', '/say begun\n/hang']);
    await running.until('stdout', /begun/);
    const pid = await agentPid('endless');
    running.kill('SIGTERM');
    expect((await running.ended).code).toBe(7);
    expect(alive(pid)).toBe(false);
    const { turns } = await home.show('endless');
    expect(turns[0]).toMatchObject({ state: 'interrupted', reply: 'begun' });
    const [summary] = await home.lines('summary', 'endless');
    expect(summary).toMatchObject({ open: 0, lock: null });
  });
});

describe('a closed stdout', () => {
  test('ends "follow" without an error', async () => {
    await home.ok('send', 'piped', 'hello');
    const running = home.start(['follow', 'piped']);
    await running.until('stdout', /turn 1 completed/);
    running.stopReading();
    await home.ok('send', 'piped', 'again');
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('does not stop a turn: it completes without an error', async () => {
    const running = home.start(['send', 'headed', '/stream 10 30', '--quiet']);
    await running.until('stdout', /chunk 1/);
    running.stopReading();
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' });
    const [turn] = (await home.show('headed')).turns;
    expect(turn).toMatchObject({ state: 'completed' });
    expect(turn.reply).toContain('chunk 10');
  });
});
