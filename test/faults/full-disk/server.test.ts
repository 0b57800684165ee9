import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ServedHome } from '../../e2e/http/support/served-home.ts';
import { until } from '../harness/until.ts';
import { fill, smallDisk } from './small-disk.ts';

test('on a full disk the server answers 507, still reads, and continues when there is space', async (context) => {
  const disk = smallDisk(context);
  const home = await ServedHome.start({ home: join(disk, 'home') });
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const first = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'The codeword is osprey' });
  await caller.finished(first.turn);
  const makeRoom = fill(disk);
  let refused = null;
  for (let i = 0; i < 2_000 && refused === null; i += 1) {
    const asked = await caller.post('/conversations', { key: `k${i}`, title: 'x'.repeat(500) });
    if (asked.status !== 200) refused = asked;
  }
  expect(refused).toMatchObject({ status: 507, body: { code: 'storage_full' } });
  expect(refused?.headers.get('retry-after')).toBe('1');
  expect((await caller.post('/conversations/chat/turns', { prompt: 'x'.repeat(20_000) })).status).toBe(507);
  expect((await caller.ok('GET', '/conversations/chat/view')).turns).toHaveLength(1);
  // Reading works, so a load balancer should continue to send requests. An operator sees why writing does not work.
  expect(await caller.get('//healthz')).toMatchObject({
    status: 200,
    body: { status: 'degraded', ready: true, reasons: [{ code: 'storage_full' }] },
  });
  expect((await caller.ok('GET', '/health')).reasons).toEqual([
    { code: 'storage_full', message: 'The disk is full.', hint: expect.stringMatching(/^Free some space/) },
  ]);
  for await (const { data } of caller.events('/conversations/chat/events')) if (data.kind === 'turn.ended') break;
  makeRoom();
  // Nobody has written yet: the store checks by itself.
  await until('it is well again', async () => (await caller.get('//healthz')).body.status === 'ok');
  const { turn } = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'Which codewords have you seen?' });
  expect((await caller.finished(turn)).reply).toContain('osprey');
  expect(await caller.ok('GET', '/conversations/chat/verify')).toMatchObject({ broken: null });
  const told = home.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'health');
  expect(told.map(({ code, gone }) => [code, gone])).toEqual([
    ['storage_full', false],
    ['storage_full', true],
  ]);
  await home[Symbol.asyncDispose]();
});
