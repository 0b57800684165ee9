import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { composeDoctor } from '../../../src/compose.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { bootId } from '../../../src/host/processes.ts';
import { marked } from '../harness/marked.ts';
import { newcomer } from '../harness/newcomer.ts';
import { Place } from '../harness/place.ts';
import { until } from '../harness/until.ts';

const LEASE_MS = 600_000;
const EPOCH = "SELECT epoch FROM leases JOIN conversations c ON c.no = conv WHERE c.key = 'c'";

/** A worker of this machine in the middle of a long tool, with an agent that continues without it. */
async function busyWorker(place: Place) {
  const prompt = `/slow-tool one ${place.effects('c')} 600000`;
  const requests = [{ prompt, options: { requestId: 'one', agent: 'survivor' } }];
  const worker = place.start('stepper', { key: 'c', requests, engine: { leaseMs: LEASE_MS } });
  const { turn } = await worker.said('accepted');
  await until('the tool to run', () => place.ran('c').length === 1);
  return { worker, turn: String(turn) };
}

/** A clock that counts from another boot, and can be moved forward. */
function clockOf(uptime: number) {
  let passed = 0;
  const clock = {
    now: () => systemClock.now() + passed,
    monotonic: () => systemClock.monotonic() + uptime + passed,
  };
  const pass = (ms: number) => {
    passed += ms;
  };
  return { clock, pass };
}

describe('a store that two machines use', () => {
  test.concurrent('keeps the lease of a worker of the other machine, also of a dead one, until it expires', async () => {
    await using place = new Place();
    const { worker, turn } = await busyWorker(place);
    const [agent] = marked(place.mark);
    const { clock, pass } = clockOf(10 ** 9);
    const machine = { boot: 'of another machine', isOver: () => false };
    await using other = await newcomer(place, { claims: 'all', leaseMs: LEASE_MS }, { clock, machine });
    // This worker runs other conversations, so it has looked for work, and for dead holders, more than once.
    expect((await other.run('before', 'hello')).state).toBe('completed');
    await worker.end();
    expect((await other.run('after', 'hello')).state).toBe('completed');
    expect((await other.engine.turn(turn)).state).toBe('running');
    expect(await place.rows(EPOCH)).toEqual([{ epoch: 1 }]);
    pass(LEASE_MS);
    const { state, failure } = await other.end(turn);
    expect(state).toBe('interrupted');
    expect(failure?.message).toContain('still runs where we cannot end it');
    expect(place.ran('c'), 'it ran once').toEqual(['one']);
    expect(
      marked(place.mark).map(({ pid }) => pid),
      'processes of another machine are left alone',
    ).toContain(agent?.pid);
  });

  test.concurrent('frees the leases of an earlier boot at once', async () => {
    await using place = new Place();
    const { worker, turn } = await busyWorker(place);
    await worker.end();
    const over = bootId();
    const machine = { boot: 'the next', isOver: (boot: string) => boot === over };
    const { clock } = clockOf(-systemClock.monotonic());
    await using next = await newcomer(place, { claims: 'all', leaseMs: LEASE_MS }, { clock, machine });
    expect((await next.end(turn)).state).toBe('interrupted');
    expect(await place.rows(EPOCH)).toEqual([{ epoch: 2 }]);
  });

  test.concurrent('is examined by the doctor, which does not take a process of another machine for a dead one', async () => {
    await using place = new Place();
    const { worker } = await busyWorker(place);
    await worker.end();
    const config = place.file('config.json');
    writeFileSync(config, JSON.stringify({ agents: { survivor: { adapter: 'scripted' } } }));
    const edit = new DatabaseSync(place.database);
    edit.exec("UPDATE workers SET process = json_set(process, '$.boot', 'another', '$.host', 'web-2')");
    const doctor = await composeDoctor({ home: place.home, config }, async () => null);
    const problems = async () =>
      (await doctor.examine()).map(({ check, process, problem }) => `${check}, ${process}: ${problem}`);
    expect(await problems()).not.toContainEqual(expect.stringMatching(/^(leases|turns),/));
    edit.exec('UPDATE leases SET ready_at = 0');
    edit.close();
    expect(await problems()).toContainEqual(
      expect.stringMatching(
        /^turns, process \d+ of web-2: It is running, but its process, on another machine or in another container, has not renewed its lease\.$/,
      ),
    );
    await doctor.close();
  });
});
