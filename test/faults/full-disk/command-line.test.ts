import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CliHome } from '../../e2e/cli-process.ts';
import { fill, smallDisk } from './small-disk.ts';

test('a disk that fills in the middle of a turn: whoever waits is told why, and the turn goes on when there is room', async (context) => {
  const disk = smallDisk(context);
  const home = new CliHome();
  onTestFinished(() => home.remove());
  // What the agent itself keeps lies elsewhere: it is our disk that is full, and not its.
  const settings = JSON.parse(readFileSync(home.config, 'utf8'));
  writeFileSync(home.config, JSON.stringify({ ...settings, sandbox: { root: join(home.path, 'sandboxes') } }));
  const env = { THROUGHLINE_HOME: join(disk, 'home') };
  const sending = home.start(['send', 'chat', '/stream 100000 5'], { env });
  await sending.until('stdout', /chunk 2 /);
  const makeRoom = fill(disk);
  await sending.until('stderr', /Waiting: The disk is full\. Free some space/);
  const seen = sending.stdout.length;
  makeRoom();
  await sending.until('stdout', new RegExp(`^[^]{${seen + 100}}`));
  expect(sending.stderr.match(/Waiting/g), 'once, and not for every try').toHaveLength(1);
  sending.kill('SIGINT');
  expect((await sending.ended).code).toBe(130);
  const verified = await home.start(['verify', 'chat'], { env }).ended;
  expect(verified).toMatchObject({ code: 0 });
});
