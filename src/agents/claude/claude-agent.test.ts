import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes } from '../../../test/contracts/agent-sandbox.ts';
import { record } from '../../../test/values/plain.ts';
import { ThroughlineError } from '../../core/errors.ts';
import type { OpenHow, OpenRequest } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { Inbox } from '../shared/inbox.ts';
import { type ClaudeAgentParts, claudeAgent } from './claude-agent.ts';
import { type ClaudeConnection, ClaudeRefusal, type ConnectRequest } from './connection.ts';
import { projectDir } from './transcript/locate.ts';
import { LearntWindows } from './windows.ts';

let sandboxes: TestSandboxes;
let sandbox: OpenSandbox;
let asked: ConnectRequest[];
let refusal: Error | null;

beforeEach(async () => {
  sandboxes = new TestSandboxes();
  sandbox = await sandboxes.sandbox();
  asked = [];
  refusal = null;
});
afterEach(() => sandboxes.dispose());

async function connect(request: ConnectRequest): Promise<ClaudeConnection> {
  asked.push(request);
  if (refusal !== null) throw refusal;
  const nothing = async () => {};
  const messages = new Inbox<never>();
  const calls = { send: () => {}, interrupt: nothing, set: async () => null, close: nothing, kill: nothing };
  return { process: null, models: [], alive: true, ending: null, messages, ...calls };
}

const NOW = Date.UTC(2026, 0, 31);
const env = () => ({ HOME: sandboxes.root });
function agent(more: Partial<ClaudeAgentParts> = {}) {
  const find = async () => ({ version: '2.1.300', where: 'here', command: ['claude'] });
  const options = { home: 'user', trustProject: false, mcpServers: [] } as const;
  const clock = { now: () => NOW, monotonic: () => 0 };
  const windows = new LearntWindows(join(sandboxes.root, 'learnt'), 'claude');
  const plain = { name: 'claude', env: env(), ours: {}, options, model: null };
  return claudeAgent({ ...plain, connect, find, windows, clock, ...more });
}
const request = (how: OpenHow, more: Partial<OpenRequest> = {}): OpenRequest => ({
  how,
  sandbox,
  noTools: false,
  signal: new AbortController().signal,
  ...more,
});
const folder = () => projectDir(env(), sandbox.work);
const fileOf = (id: string) => join(folder(), `${id}.jsonl`);
const entry = (uuid: string, parentUuid: string | null) =>
  `${JSON.stringify({ type: 'user', uuid, parentUuid, timestamp: new Date(1e12).toISOString(), message: { role: 'user', content: 'x' } })}\n`;
function keep(id: string, content: string): void {
  mkdirSync(dirname(fileOf(id)), { recursive: true });
  writeFileSync(fileOf(id), content);
}
/** Claude's note of its leaf. */
const NOTE = `${JSON.stringify({ type: 'last-prompt', leafUuid: 'error' })}\n`;

const MADE = '0199a000-0000-7000-8000-000000000001';
const COPY = '0199a000-0000-7000-8000-000000000002';

const call = (title: string, kind: string) => ({ toolCallId: '1', title, kind, rawInput: {} });

test.each([
  ['edits', [call('Write', 'edit'), call('Edit', 'edit')], '"options": {"permissionMode": "acceptEdits"}'],
  ['a command', [call('Bash', 'execute')], '"options": {"allowedTools": ["Bash"]} ('],
  ['a command and an edit', [call('Bash', 'execute'), call('Edit', 'edit')], '"allowedTools": ["Bash","Edit"]} ('],
  ['a page, twice', [call('WebFetch', 'fetch'), call('WebFetch', 'fetch')], '"allowedTools": ["WebFetch"]} ('],
])('the setting that allows %s is named', async (_, calls, setting) => {
  const how = (await agent().howToAllow?.(calls)) ?? '';
  expect(how).toContain(setting);
  // It allows edits alone.
  if (calls.some(({ kind }) => kind !== 'edit')) expect(how).not.toContain('acceptEdits');
});

test.each([
  [{ mode: 'plan', config: { effort: 'low' } }, null],
  [{ model: 'nobody-knows-it' }, null],
  [{ mode: 'nope' }, /^Claude has no mode "nope"; it has: default, /],
  [{ config: { effort: 'huge' } }, /^Claude has no effort "huge"; it has: low, /],
  [{ config: { speed: 'x' } }, /^Claude has no config option "speed"/],
])('what Claude does not have is known before it is started: %j', async (choices, why) => {
  const lacks = (await agent().lacks?.(choices)) ?? null;
  if (why === null) expect(lacks).toBeNull();
  else expect(lacks).toMatch(why);
});

test('the window of a model is that of the settings, else what Claude has reported of it, else an assumption', async () => {
  expect(await agent().traits(sandbox)).toMatchObject({ id: 'assigned', rehydrate: true, position: true });
  const window = async (made: ReturnType<typeof agent>, chosen?: string) => {
    const { window: tokens, windowFrom } = await made.traits(sandbox, undefined, chosen);
    return [tokens, windowFrom];
  };
  const long = { model: 'sonnet[1m]' };
  expect(await window(agent())).toEqual([200_000, 'assumed']);
  expect(await window(agent(long))).toEqual([1_000_000, 'assumed']);
  expect(await window(agent(), 'sonnet[1m]')).toEqual([1_000_000, 'assumed']);
  const learnt = new LearntWindows(join(sandboxes.root, 'learnt'), 'claude');
  learnt.learn(null, 400_000);
  learnt.learn('sonnet[1m]', 900_000);
  expect(await window(agent())).toEqual([400_000, 'reported']);
  expect(await window(agent(long))).toEqual([900_000, 'reported']);
  expect(await window(agent(), 'sonnet[1m]')).toEqual([900_000, 'reported']);
  expect(await window(agent(), 'haiku')).toEqual([200_000, 'assumed']);
  const options = { home: 'user', trustProject: false, mcpServers: [], window: 500_000 } as const;
  expect(await window(agent({ ...long, options }))).toEqual([500_000, 'setting']);
});

test('with a config directory in the sandbox, the login of the user does not count', async () => {
  const program = join(sandboxes.root, 'claude');
  writeFileSync(
    program,
    '#!/bin/sh\n[ -z "$CLAUDE_CONFIG_DIR" ] && in=true || in=false\necho "{\\"loggedIn\\":$in}"\n',
  );
  chmodSync(program, 0o755);
  const find = async () => ({ version: '2.1.300', where: 'here', command: [program] });
  const login = (home: 'user' | 'sandbox') => {
    const options = { home, trustProject: false, mcpServers: [] };
    return agent({ find, options }).login?.(sandbox, new AbortController().signal);
  };
  expect(await login('user')).toEqual({ loggedIn: true, hint: null });
  expect(await login('sandbox')).toEqual({ loggedIn: false, hint: 'set ANTHROPIC_API_KEY' });
});

test('a transcript that is a link is not followed, not copied, and not resumed', async () => {
  const secret = join(sandboxes.root, 'secret');
  writeFileSync(secret, entry('a', null));
  mkdirSync(folder(), { recursive: true });
  symlinkSync(secret, fileOf('linked'));
  const opened = await agent().open(request({ kind: 'resume', id: 'linked' }));
  expect(opened).toMatchObject({ ok: false, reason: 'refused', message: expect.stringContaining('is a link') });
  expect(await agent().position('linked', sandbox)).toBeNull();
  expect(await agent().history?.('linked', sandbox, new AbortController().signal)).toBeNull();
  expect(await agent().tail('linked', { prompt: 'a', position: null }, sandbox)).toBeNull();
  expect(await agent().list?.(sandbox, new AbortController().signal)).toEqual([]);
  expect(asked).toEqual([]);
});

test('a session is resumed when its file is whole; otherwise nothing is started', async () => {
  keep('whole', entry('a', null) + entry('b', 'a'));
  const opened = await agent().open(request({ kind: 'resume', id: 'whole' }));
  expect(opened).toMatchObject({ ok: true, proof: 'proved' });
  expect(opened.ok && (await opened.session.position())).toBe('2:b');
  expect(asked.map(({ how }) => how)).toEqual([{ kind: 'resume', id: 'whole' }]);

  keep('damaged', `${entry('a', null)}{"type":"us\n${entry('c', 'b')}`);
  const damaged = await agent().open(request({ kind: 'resume', id: 'damaged' }));
  expect(damaged).toMatchObject({
    ok: false,
    reason: 'refused',
    message: expect.stringMatching(/damaged \(.*corrupt/),
  });
  expect(await agent().open(request({ kind: 'resume', id: 'none' }))).toMatchObject({ ok: false, reason: 'not_found' });
  expect(asked).toHaveLength(1);
});

test('a session is rewound before a failed prompt, and keeps that position until the next one is written', async () => {
  keep('back', `${entry('a', null)}${entry('failed', 'a')}${entry('error', 'failed')}${NOTE}`);
  const rewind = { position: '1:a', drops: 'failed' };
  const opened = await agent().open(request({ kind: 'resume', id: 'back', rewind }));
  expect(asked.map(({ how }) => how)).toEqual([{ kind: 'resume', id: 'back', rewind: { at: 'a', drops: 'failed' } }]);
  expect(opened.ok && (await opened.session.position())).toBe('1:a');
  expect(await agent().position('back', sandbox)).toBe('3:error');
  appendFileSync(fileOf('back'), entry('again', 'a'));
  expect(opened.ok && (await opened.session.position())).toBe('2:again');
  // Also when Claude had noted the failed turn as its leaf, which counts more than the end of the file.
  expect(await agent().position('back', sandbox)).toBe('2:again');

  for (const position of ['2:a', '1:other', 'nonsense']) {
    const how = { kind: 'resume', id: 'back', rewind: { position, drops: 'failed' } } as const;
    expect(await agent().open(request(how))).toMatchObject({ ok: false, reason: 'refused' });
  }
  expect(asked).toHaveLength(1);
});

test('a session made from records is resumed; its file is removed when Claude refuses it', async () => {
  const how = { kind: 'rehydrate', id: MADE, from: { records: [record(1), record(2)] } } as const;
  refusal = new ClaudeRefusal('refused', 'no');
  expect(await agent().open(request(how))).toMatchObject({ ok: false, reason: 'refused', message: 'no' });
  expect(existsSync(fileOf(MADE))).toBe(false);
  refusal = new ThroughlineError('agent_unavailable', 'gone');
  await expect(agent().open(request(how))).rejects.toMatchObject({ code: 'agent_unavailable' });
  expect(existsSync(fileOf(MADE))).toBe(false);
  refusal = null;
  expect(await agent().open(request(how))).toMatchObject({ ok: true, proof: 'proved' });
  expect(await agent().position(MADE, sandbox)).toMatch(/^4:/);
  expect(asked.at(-1)?.how).toEqual({ kind: 'resume', id: MADE });
});

test('entries made from records are not later than now, whatever the records say', async () => {
  const from = { records: [{ ...record(1), startedAt: NOW + 86_400_000, endedAt: NOW + 86_400_000 }] };
  expect(await agent().open(request({ kind: 'rehydrate', id: MADE, from }))).toMatchObject({ ok: true });
  const times = readFileSync(fileOf(MADE), 'utf8').match(/(?<="timestamp":")[^"]+/g) ?? [];
  expect(times.length).toBeGreaterThan(0);
  expect(times.filter((time) => Date.parse(time) > NOW)).toEqual([]);
});

test('a copy is written back byte for byte, never over another file, and never when it is damaged', async () => {
  const transcript = Buffer.from(entry('a', null));
  const how = { kind: 'rehydrate', id: COPY, from: { transcript, memo: null } } as const;
  expect(await agent().open(request(how))).toMatchObject({ ok: true });
  expect(await agent().position(COPY, sandbox)).toBe('1:a');
  keep(COPY, entry('theirs', null));
  expect(await agent().open(request(how))).toMatchObject({ ok: false, reason: 'refused' });
  expect(await agent().position(COPY, sandbox)).toBe('1:theirs');
  const broken = { transcript: Buffer.from(entry('b', 'gone')), memo: null };
  expect(await agent().open(request({ kind: 'rehydrate', id: 'broken', from: broken }))).toMatchObject({ ok: false });
  expect(readdirSync(folder())).toEqual([`${COPY}.jsonl`]);
});

test('impossible requests are refused without starting anything', async () => {
  const fresh = { kind: 'new', id: '00000000-0000-4000-8000-000000000001' } as const;
  expect(await agent().open(request(fresh, { noTools: true }))).toMatchObject({ ok: false, reason: 'refused' });
  expect(await agent().open(request(fresh, { signal: AbortSignal.abort() }))).toMatchObject({ ok: false });
  expect(await agent().open(request({ kind: 'resume', id: '../x' }))).toMatchObject({ ok: false, reason: 'not_found' });
  expect(asked).toEqual([]);
});

test('the tail has the entries that descend from the prompt, and is null without a file', async () => {
  keep('s', entry('a', null) + entry('b', 'a'));
  expect(await agent().tail('s', { prompt: 'b', position: '1:a' }, sandbox)).toMatchObject({
    ...{ updates: [], position: '2:b', ended: false, usage: { modelCalls: 0 } },
  });
  expect(await agent().tail('none', { prompt: 'b', position: null }, sandbox)).toBeNull();
  expect(await agent().position('none', sandbox)).toBeNull();
});

test('the tail has an end if the answer is complete and the prompt follows the expected position', async () => {
  const line = (type: string, uuid: string, parentUuid: string | null, more: object = {}) =>
    `${JSON.stringify({ type, uuid, parentUuid, timestamp: new Date(1e12).toISOString(), ...more })}\n`;
  const message = { id: 'm', role: 'assistant', stop_reason: 'end_turn', content: [{ type: 'text', text: 'Done.' }] };
  const answer = (uuid: string, parent: string) => line('assistant', uuid, parent, { message });
  const ended = async (position: string | null) => (await agent().tail('s', { prompt: 'p', position }, sandbox))?.ended;

  keep('s', entry('a', null) + answer('b', 'a') + line('attachment', 'x', 'b') + entry('p', 'x') + answer('c', 'p'));
  expect([await ended('2:b'), await ended('3:x')]).toEqual([true, true]);
  // After another turn, or not at the beginning of its session.
  expect([await ended('1:a'), await ended('9:gone'), await ended(null)]).toEqual([false, false, false]);
  keep('s', line('attachment', 'x', null) + entry('p', 'x') + answer('c', 'p'));
  expect([await ended(null), await ended('2:b')]).toEqual([true, false]);
  keep('s', entry('p', null) + answer('c', 'p').slice(0, -9));
  expect(await ended(null)).toBe(false);
});
