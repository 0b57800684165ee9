import { afterAll, expect, test } from 'vitest';
import { CliHome, parseLines, preload, whenWritten } from './process.ts';

// Every exit code, each by a real case, with its message on stderr.
const home = new CliHome();
afterAll(() => home.remove());

/** Runs a command, and checks its exit code and its message. A message never has a stack. */
async function expectExit(code: number, message: RegExp, args: readonly string[]): Promise<void> {
  const ended = await home.run(...args);
  expect({ args, code: ended.code }).toEqual({ args, code });
  expect(ended.stderr).toMatch(message);
  expect(ended.stderr).not.toMatch(/^\s+at /m);
}

test('0: done', () => expectExit(0, /^new session/, ['send', 'done', 'hello']));

test('1: the agent failed', () => expectExit(1, /Turn 1: failed as asked/, ['send', 'failed', '/fail agent_failed']));

test('1: the request id is taken', async () => {
  await home.ok('send', 'taken', 'one', '--request-id', 'r');
  await expectExit(1, /request/i, ['send', 'taken', 'two', '--request-id', 'r']);
});

test('1: a bug in a callback is one line without a stack', async () => {
  await home.ok('send', 'bug', 'hello');
  const throws = `() => setTimeout(() => { throw new Error('as asked') })`;
  const env = preload('follow', whenWritten('turn 1 completed', throws));
  const { code, stderr } = await home.start(['follow', 'bug'], { env }).ended;
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'throughline: Internal error while running the command: Error: as asked\n',
  });
});

test.each([
  ['an unknown command', ['sned'], /Unknown command 'sned'\. Did you mean send\? See "throughline --help"\./],
  ['an unknown option', ['send', 'k', 'p', '--agnet', 'x'], /Unknown option '--agnet'\. Did you mean --agent\?/],
  ['a missing argument', ['show'], /Missing required argument 'key'\. See "throughline show --help"\./],
  ['a missing prompt', ['send', 'k'], /The prompt is missing\. Write it after the key, or pipe it in/],
  ['a superfluous argument', ['list', 'x'], /Too many arguments/],
  ['a value that is not a choice', ['send', 'k', 'p', '--restore', 'maybe'], /Allowed choices are required, auto, off/],
  ['a negative number', ['list', '--limit', '-1'], /whole number/],
  ['a day that does not exist', ['usage', '--since', '2026-02-30'], /must be a day/],
  ['a port that does not exist', ['serve', '--port', '65536'], /must be 65535 or less/],
  [
    'a settings file that does not exist',
    ['list', '--config', 'nowhere.json'],
    /The settings file .*nowhere\.json does not exist\./,
  ],
  ['a turn that cannot be forked from', ['fork', 'done', '--turn', '99'], /Turn 99 is not in the history/],
] as const)('2: %s', (_, args, message) => expectExit(2, message, args));

test('2: no command, with the help on stderr', async () => {
  const { code, stdout, stderr } = await home.run();
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('Usage: throughline');
});

test('3: the agent cannot be started', () =>
  expectExit(3, /Cannot start/, ['send', 'unstartable', 'hello', '--agent', 'unstartable']));

test.each([
  ['conversation', ['show', 'nobody']],
  ['conversation to follow', ['follow', 'nobody', '--until-idle']],
  ['conversation to check', ['verify', 'nobody']],
  ['conversation to rename', ['rename', 'nobody', 'Title']],
  ['conversation whose session is ended', ['kill', 'nobody']],
  ['turn or conversation to cancel', ['cancel', 'nobody']],
  ['turn to retry', ['retry', 'nobody']],
  ['question', ['answer', 'nobody', 'allow']],
] as const)('4: no such %s', (_, args) => expectExit(4, /nobody/, args));

test.each([
  ['import', ['import', 'nobody.json']],
  ['restore', ['restore', 'nobody.json']],
  ['send', ['send', 'chat', 'hello', '--file', 'nobody.json']],
] as const)('4: no such file, in the same words for each command: %s', (_, args) =>
  expectExit(4, /The file \S*nobody\.json does not exist\./, args),
);

test('4: a conversation of another owner', async () => {
  await home.ok('send', 'theirs', 'hello', '--as', 'somebody');
  await expectExit(4, /no conversation "theirs"/, ['show', 'theirs']);
  expect(await home.ok('show', 'theirs', '--as', 'somebody')).toContain('Noted: hello');
});

test('5: the permission was denied and the agent gave up', () =>
  expectExit(5, /denied: write notes/, ['send', 'denied', '/ask! write notes\n/tool write notes.log']));

test('6: the context could not be restored', async () => {
  await home.ok('send', 'lost', 'The codeword is stoat', '--agent', 'forgetful');
  await expectExit(6, /cannot be restored/, ['send', 'lost', 'Which codewords have you seen?', '--rung', 'resume']);
  const { turns, receipts } = await home.show('lost');
  expect(turns[1]).toMatchObject({ state: 'failed', sent: null, failure: { code: 'restore_failed' } });
  expect(receipts[1]).toMatchObject({ turn: 2, rung: 'none', carried: 0, dropped: 1 });
});

test('7: the agent died during the turn, and the beginning of its answer is kept', async () => {
  const { code, stdout, stderr } = await home.run('send', 'died', '/say half an answer\n/die');
  expect(code).toBe(7);
  expect(stdout).toBe('half an answer\n');
  expect(stderr).toContain('Turn 1: ');
  const [turn] = (await home.show('died')).turns;
  expect(turn).toMatchObject({ state: 'interrupted', reply: 'half an answer' });
  const again = `"throughline retry ${turn?.id}" sends the prompt again.`;
  expect(stderr).toContain(again);
  expect(turn?.failure?.hint).toContain(again);
});

test('7: the agent hangs, and a limit ends the turn', async () => {
  // Eight seconds, because on a busy machine the first text of the agent can take some.
  const { code, stdout, stderr } = await home.run('send', 'hung', '/say half an answer\n/hang!', '--stall-limit', '8');
  expect({ code, stdout }).toEqual({ code: 7, stdout: 'half an answer\n' });
  expect(stderr).toContain('Turn 1: The agent sent nothing for 8 seconds');
  const [turn] = (await home.show('hung')).turns;
  expect(turn).toMatchObject({ state: 'interrupted', failure: { code: 'stalled' }, reply: 'half an answer' });
});

test('1: the limit of the day is reached', async () => {
  await home.ok('send', 'spent', '/usage 100 0', '--limit-per-day', '100 tokens');
  const { code, stderr } = await home.run('send', 'spent', 'Hello.');
  expect(code).toBe(1);
  expect(stderr).toMatch(/this conversation .* is reached: 100 of 100 tokens spent.*00:00 UTC/s);
  expect((await home.run('send', 'spent', 'Hello.', '--limit-per-day', '7')).code).toBe(2);
  expect((await home.show('spent')).turns).toHaveLength(1);
});

test('130: cancelled', async () => {
  const running = home.start(['send', 'cancelled', '/say begun\n/hang', '--json']);
  await running.until('stdout', /agent_message_chunk/);
  running.kill('SIGINT');
  const { code, stdout } = await running.ended;
  expect(code).toBe(130);
  expect(parseLines(stdout).at(-1)).toMatchObject({ kind: 'result', turn: { state: 'cancelled' }, reply: 'begun' });
});
