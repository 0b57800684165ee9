import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { CliHome } from './process.ts';
import { inTerminal, type Terminal } from './terminal.ts';

const home = new CliHome();
afterAll(() => home.remove());

/** The lines that the screen shows at the end, without lines that were replaced. */
function screenLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => line.split('\r\u001b[K').at(-1) ?? '');
}

/** Runs the command in a terminal. Null: this machine cannot make one. */
function terminal(...args: string[]): Terminal | null {
  return inTerminal(home, args, { NO_COLOR: '1' });
}

test('a terminal shows what a turn waits for, and removes it at the end', async (context) => {
  const go = join(home.path, 'go');
  const sending = terminal('send', 'slow', `/await ${go}\n/say done`);
  if (sending === null) return context.skip('there is no script(1) to make a terminal');
  await sending.until(/starting scripted …/);
  await sending.until(/waiting for scripted … [2-9] s/); // not exactly 2: a busy machine may skip a second
  const second = terminal('send', 'slow', 'hello');
  await second?.until(/Waiting: .* holds the conversation and runs earlier turns first\./);
  writeFileSync(go, '');
  const { text } = await sending.ended;
  expect(screenLines(text).filter((line) => line !== '')).toEqual(['done', 'new session: nothing to carry']);
  const other = await second?.ended;
  expect(screenLines(other?.text ?? '').filter((line) => line !== '')).toEqual([
    'Noted: hello',
    expect.stringMatching(/^restored by resume/),
  ]);
});

test('a pipe does not get what a turn waits for', async () => {
  // Longer than the 750 ms after which a terminal would show it.
  const { stdout, stderr } = await home.run('send', 'piped', '/slow-tool write waits.log 1500\n/say done');
  expect(stdout).toBe('done\n');
  expect(stderr).toBe('tool: write waits.log\nnew session: nothing to carry\n');
});

test('a terminal shows the tool that runs', async (context) => {
  // Eight seconds, so that also a busy machine shows one of them.
  const sending = terminal('send', 'tools', '/slow-tool write long.log 8000\n/say done');
  if (sending === null) return context.skip('there is no script(1) to make a terminal');
  await sending.until(/scripted runs write long\.log … [2-7] s/);
  expect(screenLines((await sending.ended).text)).toContain('done');
});

test('"follow" at a terminal shows that it waits for the next event', async (context) => {
  await home.ok('send', 'idle', 'hello');
  const following = terminal('follow', 'idle');
  if (following === null) return context.skip('there is no script(1) to make a terminal');
  await following.until(/waiting for the next event …/);
  following.type('\u0003');
  expect((await following.ended).code).toBe(130);
});
