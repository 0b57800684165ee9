import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes } from '../../../../test/contracts/agent-sandbox.ts';
import type { ClaudeConnection, ClaudeMessage, ConnectRequest } from '../connection.ts';
import type { ClaudeOptions } from '../options.ts';
import type { Abilities } from './abilities.ts';
import { cliConnect } from './connect.ts';

// What 1.0.30 does: waits for its whole input, then answers under a new id, or says on stderr that there is no such session.
const OLD_CLAUDE = `
import { appendFileSync } from 'node:fs';
const args = process.argv.slice(2);
const resumed = args.includes('--resume') ? args[args.indexOf('--resume') + 1] : null;
let prompt = '';
for await (const piece of process.stdin) prompt += piece;
appendFileSync(process.env.TRACE, JSON.stringify({ args, prompt }) + '\\n');
if (resumed?.endsWith('dead')) { console.error('No conversation found with session ID: ' + resumed); process.exit(1); }
const id = (Number(resumed?.slice(0, 8) ?? 0) + 1).toString().padStart(8, '0') + '-0000-4000-8000-000000000000';
console.log(JSON.stringify({ type: 'system', subtype: 'init', session_id: id }));
if (prompt === 'hang') await new Promise((resolve) => setTimeout(resolve, 60_000));
if (prompt === 'die') process.exit(9);
console.log(JSON.stringify({ type: 'result', is_error: false, result: 'said ' + prompt, session_id: id }));
`;
const can: Abilities = {
  version: '1.0.30',
  warm: false,
  assignsIds: false,
  partialMessages: false,
  settings: false,
  strictMcp: false,
  noTools: false,
};

let root: string;
let sandboxes: TestSandboxes;
let connection: ClaudeConnection;
let messages: AsyncIterator<ClaudeMessage>;
beforeEach(() => {
  sandboxes = new TestSandboxes();
  root = mkdtempSync(join(tmpdir(), 'throughline-old-'));
  writeFileSync(join(root, 'old.mjs'), OLD_CLAUDE);
});
afterEach(async () => {
  await connection.kill();
  await sandboxes.dispose();
  rmSync(root, { recursive: true, force: true });
});

async function connect(how: ConnectRequest['how'], mcpServers: ClaudeOptions['mcpServers'] = []): Promise<void> {
  const sandbox = await sandboxes.sandbox();
  const env = { TRACE: join(root, 'trace') };
  const signal = new AbortController().signal;
  const onPermission = () => Promise.resolve({ behavior: 'deny', message: 'no' } as const);
  const command = [process.execPath, join(root, 'old.mjs')];
  connection = await cliConnect(async () => ({ command, can, where: 'here' }), {
    home: 'user',
    trustProject: false,
    mcpServers,
  })({
    ...{ sandbox, env, how, noTools: false, model: null, signal, onPermission },
  });
  messages = connection.messages[Symbol.asyncIterator]();
}

async function turn(text: string): Promise<ClaudeMessage[]> {
  const message = { role: 'user' as const, content: [{ type: 'text' as const, text }] };
  connection.send({ type: 'user', uuid: `u-${text}`, session_id: '', parent_tool_use_id: null, message });
  const heard: ClaudeMessage[] = [];
  for (;;) {
    const next = await messages.next();
    if (next.done) return heard;
    heard.push(next.value);
    if (next.value.state === 'idle') return heard;
  }
}
const trace = () =>
  readFileSync(join(root, 'trace'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
const ID = (n: number) => `${String(n).padStart(8, '0')}-0000-4000-8000-000000000000`;

test('every prompt has a process of its own, which resumes the id that the last one issued', async () => {
  await connect({ kind: 'new', id: ID(77) });
  const processes = [connection.process?.pid];
  for (const word of ['one', 'two', 'three']) {
    const heard = await turn(word);
    expect(heard.map(({ type }) => type)).toEqual(['system', 'result', 'system']);
    expect(heard[1]?.result).toBe(`said ${word}`);
    processes.push(connection.process?.pid);
  }
  expect(new Set(processes).size).toBe(4);
  const resumed = trace().map(({ args }) => (args.includes('--resume') ? args.at(-1) : null));
  expect(resumed).toEqual([null, ID(1), ID(2)]);
  expect(connection.alive).toBe(true);
});

test('prompts go in by stdin and never by an argument', async () => {
  await connect({ kind: 'resume', id: ID(5) });
  await turn('a secret');
  const [{ args, prompt }] = trace();
  expect(prompt).toBe('a secret');
  expect(JSON.stringify(args)).not.toContain('secret');
});

test('a session that is not there fails the turn, in Claude’s words, and not by losing it', async () => {
  await connect({ kind: 'resume', id: '00000005-0000-4000-8000-00000000dead' });
  const [result] = await turn('hello');
  expect(result).toMatchObject({ type: 'result', is_error: true, user_message_uuid: 'u-hello' });
  expect(result?.result).toContain('No conversation found');
});

test('a process that dies in the middle of a turn ends the connection, after all that it said', async () => {
  await connect({ kind: 'resume', id: ID(5) });
  const heard = await turn('die');
  expect(heard).toHaveLength(1);
  expect(connection.alive).toBe(false);
  expect(connection.ending).toContain('code 9');
});

test('an interrupt ends the process that works, and the connection with it', async () => {
  await connect({ kind: 'resume', id: ID(5) });
  const message = { role: 'user' as const, content: 'hang' };
  connection.send({ type: 'user', uuid: 'u-hang', session_id: '', parent_tool_use_id: null, message });
  expect((await messages.next()).value).toMatchObject({ subtype: 'init' });
  await connection.interrupt();
  expect((await messages.next()).done).toBe(true);
  expect(connection.alive).toBe(false);
});

test('closing one that waits for its prompt does not prompt it', async () => {
  await connect({ kind: 'resume', id: ID(5) });
  await turn('one');
  await connection.close();
  expect(connection.alive).toBe(false);
  expect(trace()).toHaveLength(1);
});

test('a version that cannot be given servers is refused before it is started', async () => {
  await connect({ kind: 'resume', id: ID(5) });
  await expect(
    connect({ kind: 'resume', id: ID(5) }, [{ name: 'notes', command: 'notes', args: [], env: [] }]),
  ).rejects.toMatchObject({
    code: 'agent_unavailable',
    message: 'This Claude cannot be given MCP servers: version 1.0.30 is too old.',
  });
});
