import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { CliHome } from './process.ts';
import { inTerminal, type Terminal } from './terminal.ts';

const home = new CliHome();
afterAll(() => home.remove());

/** What the screen has in the end: a line that was replaced is gone. */
function screen(text: string): string[] {
  return text.split(/\r?\n/).map((line) => line.split('\r\u001b[K').at(-1) ?? '');
}

function terminal(...args: string[]): Terminal | null {
  return inTerminal(home, args, { NO_COLOR: '1' });
}

test('a terminal shows what a turn waits for, and nothing of it is left', async (context) => {
  const go = join(home.path, 'go');
  const sending = terminal('send', 'slow', `/await ${go}\n/say done`);
  if (sending === null) return context.skip('there is no script(1) to make a terminal');
  await sending.until(/starting scripted …/);
  await sending.until(/waiting for scripted … [2-9] s/); // a busy machine leaves out a second
  const second = terminal('send', 'slow', 'hello');
  await second?.until(/Waiting: .* holds the conversation and runs earlier turns first\./);
  writeFileSync(go, '');
  const { text } = await sending.ended;
  expect(screen(text).filter((line) => line !== '')).toEqual(['done', 'new session: nothing to carry']);
  const other = await second?.ended;
  expect(screen(other?.text ?? '').filter((line) => line !== '')).toEqual([
    'Noted: hello',
    expect.stringMatching(/^restored by resume/),
  ]);
});

test('a pipe gets nothing of it', async () => {
  const { stdout, stderr } = await home.run('send', 'piped', '/slow-tool write waits.log 1500\n/say done');
  expect(stdout).toBe('done\n');
  expect(stderr).toBe('tool: write waits.log\nnew session: nothing to carry\n');
});

test('a tool that runs long is named', async (context) => {
  const sending = terminal('send', 'tools', '/slow-tool write long.log 8000\n/say done');
  if (sending === null) return context.skip('there is no script(1) to make a terminal');
  await sending.until(/scripted runs write long\.log … [2-7] s/);
  expect(screen((await sending.ended).text)).toContain('done');
});

test('following without anything new says what it waits for', async (context) => {
  await home.ok('send', 'idle', 'hello');
  const following = terminal('follow', 'idle');
  if (following === null) return context.skip('there is no script(1) to make a terminal');
  await following.until(/waiting for the next event …/);
  following.type('\u0003');
  expect((await following.ended).code).toBe(130);
});
