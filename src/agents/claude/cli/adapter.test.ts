import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes } from '../../../../test/contracts/agent-sandbox.ts';
import type { ClaudeConnection, ClaudeMessage, ClaudeRefusal, ConnectRequest } from '../connection.ts';
import { ISOLATION_DEFAULTS } from '../environment.ts';
import type { ClaudeOptions } from '../settings.ts';
import { argumentsFor, checkId, cliConnect } from './adapter.ts';

// Implements the control protocol as far as these tests need it. The prompt selects what it does.
const CLAUDE = `
import { createInterface } from 'node:readline';
const say = (message) => console.log(JSON.stringify(message));
const mode = process.env.MODE;
if (mode === 'dies') { console.error('Cannot find module'); process.exit(3); }
if (mode === 'unknown') { console.error('No conversation found with session ID: x'); process.exit(1); }
if (mode === 'says-so') { say({ type: 'result', is_error: true, errors: ['No conversation found with session ID: x'] }); process.exit(1); }
for await (const line of createInterface({ input: process.stdin })) {
  const { type, request_id, request, message } = JSON.parse(line);
  if (type === 'control_request') {
    if (request.subtype === 'mcp_set_servers') {
      if (mode === 'ends') process.exit(5);
      const answers = { refuses: { subtype: 'error', error: 'no such request' }, fails: { subtype: 'success', response: { errors: { notes: 'ENOENT of-notes' } } } };
      say({ type: 'servers', servers: request.servers, args: process.argv });
      say({ type: 'control_response', response: { request_id, ...(answers[mode] ?? { subtype: 'success', response: { errors: {} } }) } });
      continue;
    }
    if (mode?.startsWith('init: ')) say({ type: 'control_response', response: { subtype: 'error', request_id, error: mode.slice(6) } });
    else say({ type: 'control_response', response: { subtype: 'success', request_id } });
  }
  if (type !== 'user') continue;
  if (message.content === 'noise') { console.log('not JSON'); console.log('{"no":"type"}'); say({ type: 'result', subtype: 'success' }); }
  if (message.content === 'last words') { process.stdout.write('{"type":"assistant","n":1}\\n{"type":"assistant","n":2}', () => process.exit(4)); }
  if (message.content === 'too long') { process.stdout.write('x'.repeat(65 * 1024 * 1024)); }
}
`;

let root: string;
let sandboxes: TestSandboxes;
beforeEach(() => {
  sandboxes = new TestSandboxes();
  root = mkdtempSync(join(tmpdir(), 'throughline-cli-'));
  writeFileSync(join(root, 'claude.mjs'), CLAUDE);
});
afterEach(async () => {
  await sandboxes.dispose();
  rmSync(root, { recursive: true, force: true });
});

const id = '44444444-4444-4444-8444-444444444444';

const NOTES = { name: 'notes', command: 'notes', args: [], env: [{ name: 'TOKEN', value: 'of-notes' }] };

async function connect(
  mode = '',
  kind: 'new' | 'resume' = 'resume',
  more: Partial<ConnectRequest> = {},
  mcpServers: ClaudeOptions['mcpServers'] = [],
) {
  const command = [process.execPath, join(root, 'claude.mjs')];
  const onPermission = () => Promise.resolve({ behavior: 'deny', message: 'no' } as const);
  return cliConnect(async () => ({ command }), { home: 'user', trustProject: false, mcpServers })({
    ...{
      sandbox: await sandboxes.sandbox(),
      env: { MODE: mode },
      how: { kind, id },
      noTools: false,
      model: null,
      onPermission,
    },
    signal: new AbortController().signal,
    ...more,
  });
}

async function heard(connection: ClaudeConnection, prompt: string, until: (message: ClaudeMessage) => boolean) {
  const message = { role: 'user', content: prompt } as const;
  connection.send({ type: 'user', uuid: 'u', session_id: id, parent_tool_use_id: null, message });
  const messages: ClaudeMessage[] = [];
  for await (const one of connection.messages) {
    messages.push(one);
    if (until(one)) break;
  }
  return messages;
}
const never = () => false;

test('output that is not a message is ignored', async () => {
  const connection = await connect();
  expect(await heard(connection, 'noise', ({ type }) => type === 'result')).toHaveLength(1);
  await connection.close();
  expect(connection.ending).toBe('with code 0');
});

test('all output is delivered before the end is reported', async () => {
  const connection = await connect();
  expect((await heard(connection, 'last words', never)).map(({ n }) => n)).toEqual([1, 2]);
  expect(connection.alive).toBe(false);
  expect(connection.ending).toContain('code 4');
});

test('a line that never ends ends the process, so that it does not fill the memory', async () => {
  const connection = await connect();
  expect(await heard(connection, 'too long', never)).toEqual([]);
  expect(connection.ending).toContain('a line that is too long');
});

test('after its end a connection ignores everything and throws nothing', async () => {
  const connection = await connect();
  await connection.kill();
  expect(await heard(connection, 'noise', never)).toEqual([]);
  await connection.interrupt();
  await connection.close();
  await connection.kill();
});

test.each(['unknown', 'says-so'])('a missing session is reported as not found (%s)', async (mode) => {
  await expect(connect(mode)).rejects.toMatchObject({ name: 'ClaudeRefusal', reason: 'not_found' });
});

test('when Claude does not start, a new session is unavailable, and a resume is refused', async () => {
  await expect(connect('dies', 'new')).rejects.toMatchObject({
    code: 'agent_unavailable',
    message: expect.stringContaining('Cannot find module'),
  });
  await expect(connect('dies', 'resume')).rejects.toMatchObject({ name: 'ClaudeRefusal', reason: 'refused' });
});

test('when Claude answers its start with an error, no session is open, and the failure contains that error', async () => {
  const said = 'Your organization has disabled this model';
  await expect(connect(`init: ${said}`, 'new')).rejects.toMatchObject({
    code: 'agent_unavailable',
    message: `Claude did not open its session: ${said}.`,
  });
  await expect(connect(`init: ${said}`, 'resume')).rejects.toMatchObject({
    name: 'ClaudeRefusal',
    reason: 'refused',
    message: `Claude did not open its session: ${said}`,
  });
  await expect(connect('init: No conversation found with session ID: x')).rejects.toMatchObject({
    reason: 'not_found',
  });
});

test('an aborted opening leaves nothing running', async () => {
  const abort = new AbortController();
  const opening = connect('', 'new', { signal: abort.signal });
  abort.abort();
  await expect(opening).rejects.toMatchObject({ reason: 'refused', message: 'opening was cancelled' });
});

test('servers are given through the input, not in arguments; without tools there are none', async () => {
  const connection = await connect('', 'new', {}, [NOTES]);
  const [given] = await heard(connection, 'noise', ({ type }) => type === 'servers');
  expect(given).toMatchObject({
    servers: { notes: { type: 'stdio', command: 'notes', args: [], env: { TOKEN: 'of-notes' } } },
    args: expect.arrayContaining(['--strict-mcp-config']),
  });
  expect(JSON.stringify(given?.args)).not.toContain('notes');
  await connection.kill();
  const without = await connect('', 'new', { noTools: true }, [NOTES]);
  const said = await heard(without, 'noise', ({ type }) => type === 'result');
  expect(said.map(({ type }) => type)).not.toContain('servers');
  await without.kill();
});

test.each([
  ['fails', /An MCP server did not start\. "notes": ENOENT …$/],
  ['refuses', /refused the MCP servers: no such request/],
  ['ends', /Claude ended with code 5/],
])('Claude is unavailable when its servers do not start: it %s', async (mode, message) => {
  await expect(connect(mode, 'new', {}, [NOTES])).rejects.toMatchObject({
    code: 'agent_unavailable',
    message: expect.stringMatching(message),
  });
});

const plain = { model: null, noTools: false, env: {} };

test('a new session is given its id, a resumed one is resumed', () => {
  const fresh = argumentsFor({ how: { kind: 'new', id }, ...plain }, {});
  expect(fresh.slice(-2)).toEqual(['--session-id', id]);
  const resumed = argumentsFor({ how: { kind: 'resume', id }, ...plain }, {});
  expect(resumed.slice(-2)).toEqual(['--resume', id]);
  expect(resumed).not.toContain('--session-id');
});

test('a rewound session names the entry to go back to and the prompt to drop', () => {
  const how = { kind: 'resume', id, rewind: { at: 'leaf', drops: 'prompt' } } as const;
  const args = argumentsFor({ how, ...plain }, {});
  expect(args.slice(-6)).toEqual(['--resume', id, '--resume-session-at', 'leaf', '--resume-drops-turn', 'prompt']);
});

test('the period after which Claude deletes sessions is an argument, and no settings file is edited', () => {
  const args = argumentsFor({ how: { kind: 'resume', id }, ...plain }, {});
  expect(args[args.indexOf('--settings') + 1]).toBe('{"cleanupPeriodDays":36500}');
});

test('without tools there are no settings files and no servers either', () => {
  const args = argumentsFor({ how: { kind: 'resume', id }, ...plain, noTools: true }, {});
  expect(args.join(' ')).toMatch(/--strict-mcp-config .*--tools {2}--setting-sources {2}--resume/);
});

test('tools that wake Claude later are off unless background tasks are on; the tool for questions is always off', () => {
  const forbidden = (env: Record<string, string>) => {
    const args = argumentsFor({ how: { kind: 'resume', id }, ...plain, env }, {});
    return args[args.indexOf('--disallowedTools') + 1];
  };
  expect(forbidden({ ...ISOLATION_DEFAULTS })).toBe('Monitor,ScheduleWakeup,CronCreate,AskUserQuestion');
  for (const value of ['0', 'false', '']) {
    expect(forbidden({ CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: value })).toBe('AskUserQuestion');
  }
});

test('only a UUID reaches Claude, which would treat anything else as the title of a session', () => {
  const reason = (how: Parameters<typeof checkId>[0]) => {
    try {
      checkId(how);
      return null;
    } catch (error) {
      return (error as ClaudeRefusal).reason;
    }
  };
  for (const bad of ['', 'my notes', '../../etc/passwd', `${id} `, `--help`]) {
    expect(reason({ kind: 'resume', id: bad })).toBe('not_found');
    expect(reason({ kind: 'new', id: bad })).toBe('refused');
  }
  expect(reason({ kind: 'resume', id })).toBeNull();
});
