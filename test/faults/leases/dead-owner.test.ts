import { mkdirSync, rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { marked } from '../harness/marked.ts';
import { newcomer } from '../harness/newcomer.ts';
import { Place } from '../harness/place.ts';
import { until } from '../harness/until.ts';
import { codewordsIn, QUESTION } from '../storm/prompts.ts';

/** Longer than any test here: a process that takes over has not waited for the lease to expire. */
const LEASE_MS = 600_000;

/** A worker in the middle of a long tool, with an agent that continues without it. */
async function busyWorker(place: Place, cwd?: string) {
  const file = place.effects('c');
  const prompt = `The codeword is one.\n/slow-tool one ${file} 600000\n/tool late ${file}`;
  const requests = [{ prompt, options: { requestId: 'one', agent: 'survivor' } }];
  const worker = place.start('stepper', { key: 'c', cwd, requests, engine: { leaseMs: LEASE_MS } });
  const { turn } = await worker.said('accepted');
  await until('the tool to run', () => place.ran('c').length === 1);
  return { worker, turn: String(turn) };
}

/** A worker with a warm agent that does not end when its worker is killed. */
async function warmWorker(place: Place) {
  const requests = [{ prompt: 'hello', options: { requestId: 'one', agent: 'lingerer' } }];
  const worker = place.start('stepper', { key: 'c', requests, engine: { leaseMs: LEASE_MS } });
  await worker.said('ended');
  return worker;
}

function expectOrphanEnded(place: Place): void {
  expect(place.ran('c'), 'the orphan was ended before it could continue').toEqual(['one']);
}

describe('the lease of a worker that was killed', () => {
  test.concurrent('is free at once for a worker that starts later, and its orphan is ended', async () => {
    await using place = new Place();
    const { worker, turn } = await busyWorker(place);
    await worker.end();
    expect(marked(place.mark), 'the orphan continues').toHaveLength(1);
    await using taker = await newcomer(place, { claims: 'all', leaseMs: LEASE_MS });
    expect((await taker.end(turn)).state).toBe('interrupted');
    expectOrphanEnded(place);
    expect(marked(place.mark)).toEqual([]);
  });

  test.concurrent('is free at once for a worker that already runs', async () => {
    await using place = new Place();
    const { worker, turn } = await busyWorker(place);
    await using taker = await newcomer(place, { claims: 'all', leaseMs: LEASE_MS });
    await taker.engine.summary('c');
    await worker.end();
    expect((await taker.end(turn)).state).toBe('interrupted');
    expectOrphanEnded(place);
    expect(marked(place.mark)).toEqual([]);
  });

  test.concurrent('is free at once for a process that runs only its own turn and keeps no session warm', async () => {
    await using place = new Place();
    const { worker, turn } = await busyWorker(place);
    await worker.end();
    await using taker = await newcomer(place, { claims: 'own', maxWarm: 0, leaseMs: LEASE_MS });
    const own = await taker.run('c', `The codeword is two.\n${QUESTION}`);
    expect((await taker.engine.turn(turn)).state).toBe('interrupted');
    expect(codewordsIn(own.reply)).toEqual(['one', 'two']);
    expectOrphanEnded(place);
    await until('the lease to be given back', async () => (await place.rows('SELECT * FROM workers')).length === 0);
    expect(marked(place.mark)).toEqual([]);
  });

  test.concurrent('is free at once for a process that waits with its own turn', async () => {
    await using place = new Place();
    const { worker } = await busyWorker(place);
    await using taker = await newcomer(place, { claims: 'own', maxWarm: 0, leaseMs: LEASE_MS });
    const { turn } = await taker.engine.submit('c', `The codeword is two.\n${QUESTION}`);
    expect(turn.state).toBe('queued');
    await worker.end();
    expect(codewordsIn((await taker.end(turn.id)).reply)).toEqual(['one', 'two']);
    expectOrphanEnded(place);
  });

  test.concurrent('is released with its turn interrupted, also when the working directory is gone', async () => {
    await using place = new Place();
    const cwd = place.file('work');
    mkdirSync(cwd);
    const { worker, turn } = await busyWorker(place, cwd);
    await worker.end();
    rmSync(cwd, { recursive: true });
    await using taker = await newcomer(place, { claims: 'all', leaseMs: LEASE_MS });
    expect((await taker.end(turn)).state).toBe('interrupted');
    expectOrphanEnded(place);
    expect((await taker.run('c', 'go on')).failure?.code).toBe('refused');
  });

  test.concurrent.each([{ claims: 'all' }, { claims: 'own', maxWarm: 0 }] as const)(
    'is released, and its warm agent is ended without a prompt by a process that starts later: %j',
    async (engine) => {
      await using place = new Place();
      const worker = await warmWorker(place);
      await worker.end();
      expect(marked(place.mark), 'its agent still waits').toHaveLength(1);
      await using _ = await newcomer(place, { ...engine, leaseMs: LEASE_MS });
      await until('what it left running is gone', () => marked(place.mark).length === 0);
    },
  );

  test.concurrent('is released, and its warm agent is ended by a process that already runs and has a warm agent itself', async () => {
    await using place = new Place();
    await using other = await newcomer(place, { claims: 'own', leaseMs: LEASE_MS });
    await other.run('other', 'hello', { agent: 'lingerer' });
    const [own] = marked(place.mark);
    const worker = await warmWorker(place);
    await worker.end();
    await until('what it left running is gone', () => marked(place.mark).length === 1);
    expect(marked(place.mark)).toEqual([own]);
  });

  test.concurrent('stays held while its worker lives, however long others wait', async () => {
    await using place = new Place();
    const { turn } = await busyWorker(place);
    await using taker = await newcomer(place, { claims: 'all', leaseMs: LEASE_MS });
    // The taker runs another conversation, so it has looked for work more than once.
    expect((await taker.run('other', 'hello')).state).toBe('completed');
    expect((await taker.engine.turn(turn)).state).toBe('running');
    expect(await place.rows("SELECT epoch FROM leases JOIN conversations c ON c.no = conv WHERE c.key = 'c'")).toEqual([
      { epoch: 1 },
    ]);
  });
});
