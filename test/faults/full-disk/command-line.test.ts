import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CliHome } from '../../e2e/cli/process.ts';
import { fill, smallDisk } from './small-disk.ts';

/** A data home on a small disk. The agent stores its own data elsewhere: only the disk of the data home is full. */
function homeOn(disk: string) {
  const home = new CliHome();
  onTestFinished(() => home.remove());
  const settings = JSON.parse(readFileSync(home.config, 'utf8'));
  writeFileSync(home.config, JSON.stringify({ ...settings, sandbox: { root: join(home.path, 'sandboxes') } }));
  const env = { THROUGHLINE_HOME: join(disk, 'home') };
  const start = (...args: string[]) => home.start(args, { env });
  return { path: home.path, start, run: (...args: string[]) => start(...args).ended };
}

test('data on a full disk can be backed up, and a backup or restore without space says which disk is full', async (context) => {
  const disk = smallDisk(context);
  const { run, path } = homeOn(disk);
  await run('send', 'chat', 'The codeword is osprey');
  fill(disk);
  expect(await run('backup', join(path, 'copy.db'))).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('1 turn'),
  });
  const refused = {
    code: 1,
    stderr: `throughline: The disk of ${disk} is full. Nothing was changed. Free some space there, and try again.\n`,
  };
  expect(await run('backup', join(disk, 'copy.db'))).toMatchObject(refused);
  expect(await run('restore', join(path, 'copy.db'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(' is full.'),
  });
  expect(readdirSync(disk).toSorted()).toEqual(['filler', 'home']);
  expect((await run('list')).stdout).toMatch(/^chat {2}1 turn, /);
});

test('on a full disk every command that reads works, and a prompt is refused: nothing is stored, and nothing continues by itself', async (context) => {
  const disk = smallDisk(context);
  const { run } = homeOn(disk);
  await run('send', 'chat', 'The codeword is osprey');
  const makeRoom = fill(disk);
  for (const args of [
    ['show', 'chat'],
    ['summary', 'chat'],
    ['search', 'osprey'],
    ['follow', 'chat', '--until-idle'],
    ['verify', 'chat'],
  ]) {
    expect(await run(...args), args.join(' ')).toMatchObject({ code: 0, stderr: '' });
  }
  expect(await run('export', 'chat')).toMatchObject({ code: 0, stderr: 'exported 1 turn\n' });
  expect((await run('list')).stdout).toMatch(/^chat {2}1 turn, /);
  const sent = await run('send', 'chat', 'Hello.');
  expect(sent).toMatchObject({ code: 1, stdout: '' });
  expect(sent.stderr).toBe('throughline: The disk is full. Nothing was stored. Free some space, and try again.\n');
  const served = await run('serve', '--port', '0');
  expect([served.code, served.stderr]).toEqual([
    2,
    expect.stringMatching(/Cannot write .*token\. Remove the directory .* free some space/),
  ]);
  expect(readdirSync(join(disk, 'home', 'server'))).toEqual(['lock']);
  makeRoom();
  expect((await run('send', 'chat', 'Which codewords have you seen?')).stdout).toContain('osprey');
});

test('on a full disk a turn that a killed command left is shown as not ended; with free space it is ended', async (context) => {
  const disk = smallDisk(context);
  const { start, run } = homeOn(disk);
  // Slowly, so that the log stays short. A long log that was already written into the data file would have space for the end of the turn.
  const sending = start('send', 'chat', '/stream 100000 200');
  await sending.until('stdout', /chunk 2 /);
  sending.kill('SIGKILL');
  await sending.ended;
  const makeRoom = fill(disk);
  const shown = await run('show', 'chat');
  // The log may have space for one more commit. Then the command tried to record the end, and waited.
  expect(shown).toMatchObject({ code: 0, stderr: expect.stringMatching(/^(Waiting: The disk is full\..*\n)?$/) });
  expect(shown.stdout).toContain(
    'The process that ran turn 1 has ended, and the end of the turn could not be recorded.',
  );
  makeRoom();
  expect((await run('show', 'chat')).stdout).toMatch(/turn 1 {2}scripted, interrupted/);
});

test('a disk that fills in the middle of a turn: the waiting command says why, and the turn continues when there is space', async (context) => {
  const disk = smallDisk(context);
  const { start, run } = homeOn(disk);
  const sending = start('send', 'chat', '/stream 100000 5');
  await sending.until('stdout', /chunk 2 /);
  const makeRoom = fill(disk);
  await sending.until('stderr', /Waiting: The disk is full\. Free some space; work then continues by itself\./);
  const seen = sending.stdout.length;
  makeRoom();
  await sending.until('stdout', new RegExp(`^[^]{${seen + 100}}`));
  expect(sending.stderr.match(/Waiting/g), 'once, and not for every try').toHaveLength(1);
  sending.kill('SIGINT');
  expect((await sending.ended).code).toBe(130);
  expect(await run('verify', 'chat')).toMatchObject({ code: 0 });
});
