import { spawn, spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { ServedHome, TOKEN } from './http/support/served-home.ts';

/** test/package/packed.test.ts runs these tests with the examples of the packed package. */
const EXAMPLES = process.env.THROUGHLINE_EXAMPLES ?? fileURLToPath(new URL('../../examples/', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'throughline-examples-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs an example as a person would, expects the exit code 0, and returns the lines that it printed. */
async function example(name: string, ...args: string[]): Promise<string[]> {
  const env = { ...process.env, TMPDIR: scratch };
  const { code, lines } = await run(process.execPath, [join(EXAMPLES, name), ...args], env);
  expect(code, lines.join('\n')).toBe(0);
  return lines;
}

async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => output.push(String(bytes)));
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, lines: output.join('').trim().split('\n') };
}

test('quickstart prints the text, an answer and its receipt, and a second run continues the conversation', async () => {
  const [home = '', ...first] = await example('quickstart.ts');
  expect(first).toEqual([
    'text: Noted: The codeword is amber.',
    'ended: completed',
    'reply: I have seen these codewords: amber.',
    'receipt: live, 1 turns carried, 0 dropped, proved',
    'summary: 2 turns in 1 session',
  ]);
  const second = await example('quickstart.ts', home.replace('home: ', ''));
  expect(second.at(-1)).toBe('summary: 4 turns in 1 session');
});

test('restart continues in another process with an agent that has forgotten everything', async () => {
  const lines = await example('restart.ts');
  expect(lines.map((line) => line.replace(/^process \d+ /, ''))).toEqual([
    '(new): Noted: The codeword is amber.',
    '(transcript): Noted: The codeword is birch.',
    '(transcript): I have seen these codewords: amber, birch.',
  ]);
  expect(new Set(lines.map((line) => /^process (\d+)/.exec(line)?.[1])).size).toBe(3);
});

test('permissions are asked and answered, and denied where nobody can answer', async () => {
  expect(await example('permissions.ts')).toEqual([
    'May I write notes.txt? → allow',
    'completed: Done.',
    'May I delete everything? → reject',
    'completed: Permission denied: May I delete everything?.',
    'decided here: Done.',
    'nobody can answer here: Permission denied: May I write notes.txt?.',
  ]);
});

test('tracker records the requests and sessions of a program that runs its agent itself', async () => {
  expect(await example('tracker.ts')).toEqual([
    'req1: pending, continuing in a session that has no name yet',
    'req1: completed in abc789',
    'req2: active, continuing in abc789',
    'req2: completed in def012',
    'sessions: abc789 → def012',
    'lock: null',
    'turns: 2',
  ]);
});

test('tracker.py does the same through a server, with only the standard library of Python', async (context) => {
  const python = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 8))']);
  if (python.status !== 0) context.skip('needs python3, 3.8 or newer');
  await using home = await ServedHome.start();
  const env = { ...process.env, THROUGHLINE_SERVER: home.url, THROUGHLINE_TOKEN: TOKEN };
  const { code, lines } = await run('python3', [join(EXAMPLES, 'tracker.py')], env);
  expect(code, lines.join('\n')).toBe(0);
  const [first, second, third, ...rest] = lines.map((line) => line.replace(/^req[23]/, 'req2 or req3'));
  expect([first, second, third]).toEqual([
    'req1: completed in session-1: I was told: The codeword is amber',
    'req2 or req3: completed in session-2: I was told: The codeword is amber; And birch',
    'req2 or req3: completed in session-3: I was told: The codeword is amber; And birch; And birch',
  ]);
  expect(rest).toEqual(['req4: failed: The model is overloaded.', 'sessions: session-1 -> session-2 -> session-3']);
  const sessions = await home.engine.sessions('agent456');
  expect(sessions.map(({ id, state }) => `${id} ${state}`)).toEqual([
    'session-3 unsettled', // the last request failed in it
    'session-2 dormant',
    'session-1 dormant',
  ]);
  const turns = await home.engine.turns('agent456');
  expect(turns.map(({ state }) => state)).toEqual(['completed', 'completed', 'completed', 'failed']);
  expect(turns[3]).toMatchObject({ prompt: [{ text: 'Please fail' }], usage: { inputTokens: 11 } });
});

test('every example is named in a test', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const tests = globSync('test/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n');
  const examples = readdirSync(EXAMPLES).filter((name) => /\.\w+$/.test(name));
  expect(examples.length).toBeGreaterThan(5);
  expect(examples.filter((name) => !tests.includes(name))).toEqual([]);
});
