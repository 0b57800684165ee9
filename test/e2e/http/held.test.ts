import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { heavyCalls } from '../../../bench/support/heavy-calls.ts';
import { HeavyServer } from '../../../bench/support/heavy-server.ts';
import { until } from '../../faults/harness/until.ts';

/** Small, so that the test is cheap. Large enough that a server that did one of the calls in one go would block for seconds. */
const SIZES = { turns: 5_000, large: 20, largeBytes: 500_000, bodyBytes: 16_777_216 };

let server: HeavyServer;
beforeAll(async () => {
  server = await HeavyServer.start(SIZES);
});
afterAll(() => server[Symbol.asyncDispose]());

const exportStatus = () => server.call('GET', '/v1/conversations/long/export');

test.each(heavyCalls(SIZES))('the event loop is blocked for less than two seconds by: $name', async (call) => {
  const { status, heldMs } = await server.hold(call);
  expect(call.statuses).toContain(status);
  expect(heldMs).toBeLessThan(2_000);
});

test('the metrics report how long the event loop was blocked', async () => {
  expect(await server.text('/metrics')).toMatch(/^throughline_event_loop_delay_seconds\{quantile="1"\} [0-9.e-]+$/m);
});

test('an owner may have only a few such requests at once, and again when some have ended', async () => {
  const endless = Array.from({ length: 4 }, () => server.begin('POST', '/v1/imports', '{"exported":['));
  await until('another request is refused', async () => (await exportStatus()) === 429);
  for (const request of endless) request.destroy();
  await until('another request is accepted', async () => (await exportStatus()) === 200);
});

test('a client that disconnects before the answer begins does not count any more', async () => {
  for (let i = 0; i < 4; i += 1) {
    const request = server.begin('GET', '/v1/conversations/long/export', '').end();
    await once(request, 'finish');
    request.destroy();
    await new Promise((resolve) => request.once('close', resolve));
  }
  await until('another request is accepted', async () => (await exportStatus()) === 200);
});
