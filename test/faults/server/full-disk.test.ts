import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, type TestContext, test } from 'vitest';
import { ServedHome } from '../../e2e/http/support/served-home.ts';

test('on a full disk the server answers 507, still reads, and goes on when there is room', async (context) => {
  const disk = smallDisk(context);
  const home = await ServedHome.start({ home: join(disk, 'home') });
  const { caller } = home;
  await caller.ok('POST', '/conversations', { key: 'chat' });
  const first = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'The codeword is osprey' });
  await caller.finished(first.turn);
  const filler = join(disk, 'filler');
  writeFileSync(filler, Buffer.alloc(statfsSync(disk).bavail * statfsSync(disk).bsize));
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
  rmSync(filler);
  const { turn } = await caller.ok('POST', '/conversations/chat/turns', { prompt: 'Which codewords have you seen?' });
  expect((await caller.finished(turn)).reply).toContain('osprey');
  expect(await caller.ok('GET', '/conversations/chat/verify')).toEqual({ broken: null });
  await home[Symbol.asyncDispose]();
});

/** A file system of its own of 8 MB, where that is allowed. */
function smallDisk(context: TestContext): string {
  const disk = mkdtempSync(join(tmpdir(), 'throughline-disk-'));
  mkdirSync(disk, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk], { stdio: 'pipe' });
  } catch {
    rmSync(disk, { recursive: true });
    return context.skip('a small file system cannot be mounted here: that needs root on Linux');
  }
  onTestFinished(() => {
    execFileSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true, force: true });
  });
  return disk;
}
