import { afterAll, beforeAll, expect, test } from 'vitest';
import { CliHome } from './process.ts';
import { inTerminal } from './terminal.ts';

/** Text that tries to control the terminal that shows it. It is in the prompt, the answer, a title, a tool and a permission. */
const ESCAPES =
  'red\u001b[31m title\u001b]0;pwned\u0007 link\u001b]8;;http://evil\u001b\\x c1\u009b2J bidi\u202eevil\u2066\u200f\u061c bom\ufeff tags\u{e0041}\u{e007f} bell\u0007 back\b\b del\u007f';
const PROMPT = `/say ${ESCAPES}\n/title ${ESCAPES}\n/tool write\u001b[2J notes\u001b[31m.log\n/ask ${ESCAPES}\n/stderr`;

const home = new CliHome();
afterAll(() => home.remove());
beforeAll(async () => {
  await home.here.run('send', 'hostile', PROMPT);
});

/** Characters that must not reach a terminal: all control characters except tab and newline. */
const FORBIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/u;

test.each([
  ['send', ['send', 'again', PROMPT]],
  ['send --json', ['send', 'again', PROMPT, '--json']],
  ['a failed send', ['send', 'failed', `/fail ${ESCAPES}`]],
  ['show', ['show', 'hostile']],
  ['show --json', ['show', 'hostile', '--json']],
  ['list', ['list']],
  ['summary', ['summary', 'hostile']],
  ['search', ['search', 'title']],
  ['follow', ['follow', 'hostile', '--until-idle']],
  ['follow --json', ['follow', 'hostile', '--until-idle', '--json']],
  ['permissions', ['permissions', '--all']],
  ['export', ['export', 'hostile']],
  ['an error that quotes it', ['show', ESCAPES]],
  ['an unknown option with it', ['send', 'x', 'y', `--${ESCAPES}`]],
] as const)('no control character is written by %s', async (_, args) => {
  const { stdout, stderr } = await home.here.run(...args);
  expect(stdout + stderr).not.toBe('');
  expect(stdout).not.toMatch(FORBIDDEN);
  expect(stderr).not.toMatch(FORBIDDEN);
});

test('show keeps the readable words, and the record keeps the whole text', async () => {
  const text = await home.here.ok('show', 'hostile');
  expect(text).toContain('red title link');
  expect(text).toContain('tags\\u{e0041}');
  // What the agent asked for is written out in full: a shell would have got all of it.
  const asked = /^denied: .*$/m;
  expect(asked.exec(text)?.[0]).toContain(
    'red[U+001B · control character][31m title[U+001B · control character]]0;pwned',
  );
  expect(text.replace(asked, '')).not.toContain('pwned');
  const [turn] = (await home.show('hostile')).turns;
  expect(turn.promptText).toBe(PROMPT);
  expect(turn.reply).toContain('\u001b[31m');
});

test('an escape sequence that arrives in several pieces is removed, too', async () => {
  const { stdout } = await home.here.run('send', 'pieces', 'a\u001b[3 1m b \u001b] 0;x \u0007 c', '--agent', 'slow');
  expect(stdout).not.toMatch(FORBIDDEN);
  expect(stdout).toMatch(/^Noted: a/);
});

/** Reset, bold, dim, cyan, and yellow for a denied permission. */
const OUR_STYLES = ['\u001b[0m', '\u001b[1m', '\u001b[2m', '\u001b[36m', '\u001b[33m'];

test('a terminal gets our own styles and none of the agent, and with NO_COLOR no styles at all', async (context) => {
  const coloured = inTerminal(home, ['show', 'hostile']);
  if (coloured === null) return context.skip('needs the program "script" to make a terminal');
  const { text } = await coloured.ended;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
  expect(new Set(text.match(/\u001b\[\d+m/g))).toEqual(new Set(OUR_STYLES));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
  expect(text.replaceAll(/\u001b\[\d+m|\r/g, '')).not.toMatch(FORBIDDEN);
  const plain = await inTerminal(home, ['show', 'hostile'], { NO_COLOR: '1' })?.ended;
  expect(plain?.text.replaceAll('\r', '')).not.toMatch(FORBIDDEN);
});
