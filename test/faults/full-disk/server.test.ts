import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ServedHome } from '../../e2e/http/support/served-home.ts';
import { fill, smallDisk } from './small-disk.ts';

test('on a full disk the server answers 507, still reads, and goes on when there is room', async (context) => {
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
  expect((await caller.get('//healthz')).status).toBe(200);
  for await (const { data } of caller.events('/conversations/chat/events')) if (data.kind === 'turn.ended') break;
  makeRoom();
  const { turn } = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'Which codewords have you seen?' });
  expect((await caller.finished(turn)).reply).toContain('osprey');
  expect(await caller.ok('GET', '/conversations/chat/verify')).toMatchObject({ broken: null });
  await home[Symbol.asyncDispose]();
});
