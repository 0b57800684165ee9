// Tasks over a connection that is cut, and with a server that restarts.
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

/** Follows the board from its beginning. `upTo` waits for the event with this number, and returns all events. */
function followBoard(tasks: HttpTasks) {
  const stop = new AbortController();
  const seen: TaskEvent[] = [];
  const reading = (async () => {
    for await (const event of tasks.follow({ signal: stop.signal })) seen.push(event);
  })();
  const upTo = async (last: number) => {
    await until(`event ${last} is seen`, () => (seen.at(-1)?.seq ?? 0) >= last);
    stop.abort();
    await reading;
    return seen;
  };
  return { seen, upTo };
}

test('behind a proxy that cuts connections at random, the board has every event once, and waitFor returns', async () => {
  const seed = seedOfRun();
  await using home = await ServedHome.start();
  await using proxy = await CuttingProxy.between(home.path, home.socket);
  await using proxied = await open(proxy.path);
  await using direct = await open(home.socket);
  const board = followBoard(proxied.tasks);
  proxy.cutWithin = { bytes: 9_000, random: new Random(seed) };
  for (let round = 0; round < 20 && proxy.cuts < 8; round += 1) {
    const plan = { tasks: [{ goal: 'x', gate: 'true' }, { goal: 'y' }] };
    const { tasks } = await direct.tasks.add(plan);
    const ended = await proxied.tasks.waitFor(tasks.map(({ id }) => id));
    expect(ended.map(({ state }) => state)).toEqual(['done', 'done']);
  }
  const last = await direct.tasks.lastSeq();
  const seqs = (await board.upTo(last)).map(({ seq }) => seq);
  expect(seqs, `seed ${seed}`).toEqual(Array.from({ length: last }, (_, i) => i + 1));
  expect(proxy.cuts, `seed ${seed}`).toBeGreaterThanOrEqual(8);
});

test('a plan whose reply is lost is added once and is no duplicate; a retry is not repeated', async () => {
  await using home = await ServedHome.start();
  await using proxy = await CuttingProxy.between(home.path, home.socket);
  await using client = await open(proxy.path);
  const { tasks } = client;
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

test('when the server restarts, the board continues and the task is done', async () => {
  await using home = await ServedHome.start();
  await using client = await open(home.socket);
  const board = followBoard(client.tasks);
  const { tasks } = await client.tasks.add({ goal: '/stream 3 200', retryInterrupted: 5 });
  const waiting = client.tasks.waitFor(tasks.map(({ id }) => id));
  await until('the task has begun', () => board.seen.some(({ kind }) => kind === 'task.opened'));
  await home.down();
  await home.up();
  expect(await waiting).toMatchObject([{ state: 'done' }]);
  const last = await client.tasks.lastSeq();
  expect((await board.upTo(last)).map(({ seq }) => seq)).toEqual(Array.from({ length: last }, (_, i) => i + 1));
});
