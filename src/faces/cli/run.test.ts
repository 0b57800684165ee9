import { expect, test } from 'vitest';
import { ThroughlineError } from '../../core/errors.ts';
import type { Engine } from '../../ports/engine.ts';
import { run } from './run.ts';

/** `opens`: `thrown` is the engine that opens. */
async function runWith(thrown: unknown, argv: readonly string[], env: NodeJS.ProcessEnv = {}, { opens = false } = {}) {
  const text = { stdout: '', stderr: '' };
  const sink = (name: 'stdout' | 'stderr') => ({
    write: (chunk: string) => {
      text[name] += chunk;
    },
    on: () => {},
  });
  const fail = () => Promise.reject(thrown);
  const desks = {
    keys: fail,
    tasks: fail,
    doctor: fail,
    nativeSessions: fail,
    demo: fail,
    names: fail,
    backup: fail,
    restore: fail,
    copyStore: fail,
    reopenStore: fail,
  };
  const clock = { now: () => 0, monotonic: () => 0 };
  const open = () => (opens ? Promise.resolve(thrown as Engine) : fail());
  const parts = { open, chat: fail, install: fail, serve: fail, link: fail, ...desks };
  const code = await run(argv, { parts, version: '1.2.3', stdout: sink('stdout'), stderr: sink('stderr'), env, clock });
  return { code, ...text };
}

test('a bug is reported in one sentence without a stack', async () => {
  const { code, stdout, stderr } = await runWith(new TypeError('x is not a function\n    at y'), ['list']);
  expect(code).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toBe(
    'throughline: Internal error: x is not a function. This is a bug. Set THROUGHLINE_DEBUG=1 to see where it happened.\n',
  );
});

test('THROUGHLINE_DEBUG shows the stack', async () => {
  const { stderr } = await runWith(new TypeError('x is not a function'), ['list'], { THROUGHLINE_DEBUG: '1' });
  expect(stderr).toMatch(/\n\s+at .*run\.test\.ts/);
});

test('a thrown value that is not an error is reported as well', async () => {
  expect((await runWith('nothing\u001b[2J', ['list'])).stderr).toContain('Internal error: nothing.');
});

test('a known error says what happened and what to do, and ends with the number of its code', async () => {
  const error = new ThroughlineError('storage_newer', 'It is from a newer version.', { hint: 'Update.' });
  expect(await runWith(error, ['list'])).toEqual({
    code: 1,
    stdout: '',
    stderr: 'throughline: It is from a newer version. Update.\n',
  });
  const { stderr } = await runWith(error, ['list', '--json']);
  expect(JSON.parse(stderr)).toEqual({
    error: { code: 'storage_newer', message: 'It is from a newer version.', hint: 'Update.' },
  });
});

test.each([
  ['one of the same data gets the flag', '--server http://host', 'list', 'list --server http://host'],
  ['one that works on the machine of the server gets no server', '--server http://host', 'serve', 'serve'],
  ['"store" takes no such flags', '--home /x', 'store reopen STORE', 'store reopen STORE'],
  [
    'one that names another data home stays as it is',
    '--home /x --store sqlite:y',
    'serve --home /z',
    'serve --home /z',
  ],
])('the command of a hint: %s', async (_, flags, hinted, expected) => {
  const error = new ThroughlineError('refused', 'No.', { hint: `See "throughline ${hinted}".` });
  const { stderr } = await runWith(error, [...flags.split(' '), 'list']);
  const [, words = ''] = /"(?:npx )?throughline (.*)"/.exec(stderr) ?? [];
  expect(words.split(' ').sort()).toEqual(expected.split(' ').sort());
});

test('wrong use is reported as JSON with --json', async () => {
  const { code, stderr } = await runWith(null, ['list', '--json', '--limit', 'many']);
  expect(code).toBe(2);
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'invalid', hint: 'See "throughline list --help".' } });
});

test.each([
  [['keys', 'create'], 'throughline keys create --help'],
  [['keys', 'create', 'x', '--scpes', 'read'], 'throughline keys create --help'],
  [['store', 'copy'], 'throughline store copy --help'],
  [['keys', 'creat'], 'throughline keys --help'],
  [['list', '--lmit', '3'], 'throughline list --help'],
  [['lst'], 'throughline --help'],
])('wrong use of %j leads to the help that describes it', async (argv, help) => {
  expect((await runWith(null, argv)).stderr).toContain(`See "${help}".`);
});

test('"help" shows the help of a subcommand too', async () => {
  expect((await runWith(null, ['help', 'keys', 'create'])).stdout).toContain('Usage: throughline keys create');
  expect((await runWith(null, ['help'])).stdout).toContain('Usage: throughline [options] [command]');
});

test('"sandbox exec" says that it ended a command which took too long, and all its own failures end with 125', async () => {
  const ran = { code: null, signal: 'SIGKILL', timedOut: true, stdout: 'begun\n', stderr: '', cut: false, ms: 600_000 };
  const engine = { sandboxes: { exec: async () => ran }, close: async () => {} };
  expect(await runWith(engine, ['sandbox', 'exec', 'website', '--', 'sleep', '601'], {}, { opens: true })).toEqual({
    code: 124,
    stdout: 'begun\n',
    stderr: expect.stringMatching(/^throughline: The command took longer than ten minutes and was ended\. /),
  });
  const away = new ThroughlineError('unreachable', 'The server does not answer.');
  expect((await runWith(away, ['sandbox', 'exec', 'website', '--', 'true'])).code).toBe(125);
  expect((await runWith(away, ['sandbox', 'show', 'website'])).code).toBe(1);
});
