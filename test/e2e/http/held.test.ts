import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { heavyCalls } from '../../../bench/support/heavy-calls.ts';
import { HeavyServer } from '../../../bench/support/heavy-server.ts';
import { until } from '../../faults/harness/until.ts';

/** Small, so that it is cheap, and large enough to hold a server for seconds that does each of these in one go. */
const SIZES = { turns: 5_000, large: 20, largeBytes: 500_000, bodyBytes: 16_777_216 };

let server: HeavyServer;
beforeAll(async () => {
  server = await HeavyServer.start(SIZES);
});
afterAll(() => server[Symbol.asyncDispose]());

test.each(heavyCalls(SIZES))('nobody waits for long while there is: $name', async (call) => {
  const { status, heldMs } = await server.hold(call);
  expect(call.statuses).toContain(status);
  expect(heldMs).toBeLessThan(2_000);
});

test('whoever looks at the metrics sees how long the process was held', async () => {
  expect(await server.text('/metrics')).toMatch(/^throughline_event_loop_delay_seconds\{quantile="1"\} [0-9.e-]+$/m);
});

test('an owner has only a few such requests at once, and the next when one has ended', async () => {
  const exported = () => server.call('GET', '/v1/conversations/long/export');
  const endless = Array.from({ length: 4 }, () => server.begin('POST', '/v1/imports', '{"exported":['));
  await until('too many are there', async () => (await exported()) === 429);
  for (const request of endless) request.destroy();
  await until('they have gone', async () => (await exported()) === 200);
});

test('whoever leaves before the answer begins does not count any more', async () => {
  const exported = () => server.call('GET', '/v1/conversations/long/export');
  for (let i = 0; i < 4; i += 1) {
    const request = server.begin('GET', '/v1/conversations/long/export', '').end();
    await once(request, 'finish');
    request.destroy();
    await new Promise((resolve) => request.once('close', resolve));
  }
  await until('they have gone', async () => (await exported()) === 200);
});
