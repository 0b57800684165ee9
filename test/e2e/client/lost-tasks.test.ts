// Tasks through a connection that is cut, and through a server that goes and comes back.
import { expect, test } from 'vitest';
import { connect } from '../../../src/clients/http/connect.ts';
import { socketTransport } from '../../../src/clients/http/connection/node-transport.ts';
import { HttpTasks } from '../../../src/clients/http/tasks.ts';
import type { TaskEvent } from '../../../src/index.ts';
import { Random, seedOfRun } from '../../faults/harness/random.ts';
import { until } from '../../faults/harness/until.ts';
import { ServedHome, TOKEN } from '../http/support/served-home.ts';
import { refusedWith } from '../support/conversations.ts';
import { CuttingProxy } from './support/cutting-proxy.ts';

async function open(path: string) {
  const engine = await connect({
    transport: socketTransport(path),
    token: TOKEN,
    timing: { firstMs: 5, longestMs: 50 },
  });
  return { tasks: new HttpTasks(engine.caller, null), [Symbol.asyncDispose]: () => engine.close() };
}

/** The board as somebody sees it who follows from the beginning. */
function board(tasks: HttpTasks) {
  const stop = new AbortController();
  const seen: TaskEvent[] = [];
  const reading = (async () => {
    for await (const event of tasks.follow({ signal: stop.signal })) seen.push(event);
  })();
  const upTo = async (last: number) => {
    await until(`event ${last}`, () => (seen.at(-1)?.seq ?? 0) >= last);
    stop.abort();
    await reading;
    return seen;
  };
  return { seen, upTo };
}

test('behind a proxy that cuts at random, the board has every event once, and who waits hears of the end', async () => {
  const seed = seedOfRun();
  await using home = await ServedHome.start();
  await using proxy = await CuttingProxy.between(home.path, home.socket);
  await using cut = await open(proxy.path);
  await using past = await open(home.socket);
  const watched = board(cut.tasks);
  proxy.cutWithin = { bytes: 9_000, random: new Random(seed) };
  for (let round = 0; round < 20 && proxy.cuts < 8; round += 1) {
    const plan = { tasks: [{ goal: 'x', gate: 'true' }, { goal: 'y' }] };
    const { tasks } = await past.tasks.add(plan);
    const ended = await cut.tasks.waitFor(tasks.map(({ id }) => id));
    expect(ended.map(({ state }) => state)).toEqual(['done', 'done']);
  }
  const last = await past.tasks.lastSeq();
  const seqs = (await watched.upTo(last)).map(({ seq }) => seq);
  expect(seqs).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  expect(proxy.cuts).toBeGreaterThanOrEqual(8);
});

test('a plan whose reply is lost is added once, and was not there before; a retry is not repeated', async () => {
  await using home = await ServedHome.start();
  await using proxy = await CuttingProxy.between(home.path, home.socket);
  await using world = await open(proxy.path);
  const { tasks } = world;
  await tasks.lastSeq();
  proxy.loseReplies = 2;
  const added = await tasks.add({ name: 'only', goal: 'x', gate: 'false', maxIterations: 1 });
  expect(proxy.loseReplies).toBe(0);
  expect(added).toMatchObject({ duplicate: false, tasks: [{ name: 'only' }] });
  expect(await tasks.list()).toHaveLength(1);
  expect(await tasks.waitFor(['only'])).toMatchObject([{ state: 'failed', progress: { round: 1 } }]);
  proxy.loseReplies = 1;
  await refusedWith('unreachable', tasks.retry('only'), /was lost before the server answered/);
  expect(await tasks.waitFor(['only'])).toMatchObject([{ state: 'failed', progress: { round: 2 } }]);
});

test('a server that ends and is there again: the board goes on, and the task is done', async () => {
  await using home = await ServedHome.start();
  await using world = await open(home.socket);
  const watched = board(world.tasks);
  const { tasks } = await world.tasks.add({ goal: '/stream 3 200', retryInterrupted: 5 });
  const waiting = world.tasks.waitFor(tasks.map(({ id }) => id));
  await until('the task to begin', () => watched.seen.some(({ kind }) => kind === 'task.opened'));
  await home.down();
  await home.up();
  expect(await waiting).toMatchObject([{ state: 'done' }]);
  const last = await world.tasks.lastSeq();
  expect((await watched.upTo(last)).map(({ seq }) => seq)).toEqual(Array.from({ length: last }, (_, i) => i + 1));
});
