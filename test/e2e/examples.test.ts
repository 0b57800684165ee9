import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const EXAMPLES = fileURLToPath(new URL('../../examples/', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'throughline-examples-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs an example as a person would, and gives the lines that it printed. */
async function example(name: string, ...args: string[]): Promise<string[]> {
  const env = { ...process.env, TMPDIR: scratch };
  const child = spawn(process.execPath, [join(EXAMPLES, name), ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => output.push(String(bytes)));
  const code = await new Promise((resolve) => child.once('close', resolve));
  expect(code, output.join('')).toBe(0);
  return output.join('').trim().split('\n');
}

test('quickstart shows events, an answer and its receipt, and knows what was said when it is run again', async () => {
  const [home = '', ...first] = await example('quickstart.ts');
  expect(first).toEqual([
    'update: {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Noted: The codeword is amber."}}',
    'ended: completed',
    'reply: I have seen these codewords: amber.',
    'receipt: live, 1 turns carried, 0 dropped, proved',
    'summary: 2 turns in 1 session',
  ]);
  const second = await example('quickstart.ts', home.replace('home: ', ''));
  expect(second.at(-1)).toBe('summary: 4 turns in 1 session');
});

test('restart goes on in another process with an agent that has forgotten everything', async () => {
  const lines = await example('restart.ts');
  expect(lines.map((line) => line.replace(/^process \d+ /, ''))).toEqual([
    '(new): Noted: The codeword is amber.',
    '(transcript): Noted: The codeword is birch.',
    '(transcript): I have seen these codewords: amber, birch.',
  ]);
  expect(new Set(lines.map((line) => /^process (\d+)/.exec(line)?.[1])).size).toBe(3);
});

test('permissions are asked, answered, and denied where nobody is there', async () => {
  expect(await example('permissions.ts')).toEqual([
    'May I write notes.txt? → allow',
    'completed: Done.',
    'May I delete everything? → reject',
    'completed: Permission denied: May I delete everything?.',
    'decided here: Done.',
    'nobody can answer here: Permission denied: May I write notes.txt?.',
  ]);
});

test('tracker keeps the books for a program that drives its agent itself', async () => {
  expect(await example('tracker.ts')).toEqual([
    'req1: pending, going on in a session that has no name yet',
    'req1: completed in abc789',
    'req2: active, going on in abc789',
    'req2: completed in def012',
    'sessions: abc789 → def012',
    'lock: null',
    'turns: 2',
  ]);
});

test('tasks go over their goals until their gates pass, and share what was said in their milestone', async () => {
  expect(await example('tasks.ts')).toEqual([
    'fill the log: done after 2 turns, because: The gate passed: exit code 0.',
    'remember: done after 1 turns, because: The turn completed, and there is no gate.',
    'gate: fail (exit code 1), pass (exit code 0)',
    'sessions: 1',
    'reply: I have seen these codewords: amber.',
  ]);
});

test('every example is run here, or with the real Claude in test/agents', () => {
  const tested = ['claude-sdk-by-hand.ts', 'permissions.ts', 'quickstart.ts', 'restart.ts', 'tasks.ts', 'tracker.ts'];
  expect(
    readdirSync(EXAMPLES)
      .filter((name) => name.endsWith('.ts'))
      .toSorted(),
  ).toEqual(tested);
});
