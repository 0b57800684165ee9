import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { storageAt } from '../../../../test/contracts/transcript-file.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import type { AgentEvent } from '../../../ports/agent.ts';
import { Inbox } from '../../shared/inbox.ts';
import type { ClaudeConnection, ClaudeMessage, ClaudeUserMessage } from '../connection.ts';
import { MODES } from '../settings.ts';
import { Questions } from './questions.ts';
import { ClaudeSession, type ClaudeSessionParts } from './session.ts';

/** A Claude that is controlled by the test. */
class FakeClaude implements ClaudeConnection {
  readonly process = null;
  readonly models: unknown[] = [];
  readonly messages = new Inbox<ClaudeMessage>();
  ending: string | null = null;
  interrupts = 0;
  onSend: (message: ClaudeUserMessage) => void = () => {};
  get alive() {
    return this.ending === null;
  }
  send(message: ClaudeUserMessage) {
    this.onSend(message);
  }
  onInterrupt: () => void = () => {};
  async set() {
    return null;
  }
  async interrupt() {
    this.interrupts += 1;
    this.onInterrupt();
  }
  close = () => this.kill();
  async kill() {
    this.ending ??= 'by SIGKILL';
    this.messages.close();
  }
}

const ID = 'session-1';
const AT = new Date(0).toISOString();
let folder: string;
let claude: FakeClaude;

beforeEach(() => {
  folder = temporaryFolder();
  claude = new FakeClaude();
});

const fileOf = (id: string) => join(folder, `${id}.jsonl`);
const write = (uuid: string, parentUuid: string | null, id = ID) => {
  const entry = {
    type: uuid.startsWith('p') ? 'user' : 'assistant',
    uuid,
    parentUuid,
    timestamp: AT,
    sessionId: id,
    message: { role: 'user', content: 'x' },
  };
  appendFileSync(fileOf(id), `${JSON.stringify(entry)}\n`);
};
const say = (...messages: ClaudeMessage[]) => {
  for (const message of messages) claude.messages.push(message);
};
const state = (value: string, id = ID): ClaudeMessage => ({
  type: 'system',
  subtype: 'session_state_changed',
  state: value,
  session_id: id,
});
const result = (prompt: string, id = ID): ClaudeMessage => ({
  type: 'result',
  is_error: false,
  user_message_uuids: [prompt],
  total_cost_usd: 1,
  session_id: id,
});
const answer = (uuid: string): ClaudeMessage => ({
  type: 'assistant',
  uuid,
  message: { id: 'm1', model: 'claude', content: [{ type: 'text', text: 'Yes.' }] },
});

const STARTED = { startedWith: { model: null, usualModel: null, mode: null, effort: null }, onWindow: () => {} };

function session(more: Partial<ClaudeSessionParts> = {}): ClaudeSession {
  const parts = { id: ID, file: null, connection: claude, questions: new Questions(), storage: storageAt(folder) };
  return new ClaudeSession({ ...parts, noTools: false, empty: true, costUsd: null, version: '2', ...STARTED, ...more });
}

/** A file where a folder should be. */
function unwritable(): string {
  writeFileSync(join(folder, 'file'), '');
  return `${basename(folder)}/file/projects`;
}

/** Claude writes the prompt after this entry, and completes the turn without an answer. */
const completes =
  (parent: string | null) =>
  ({ uuid }: ClaudeUserMessage) => {
    write(uuid, parent);
    say(state('running'), result(uuid), state('idle'));
  };

async function prompt(on: ClaudeSession, id: string, expected: string | null = null, signal?: AbortSignal) {
  const events: AgentEvent[] = [];
  const content = [{ type: 'text', text: 'Hello.' }] as const;
  const request = { id, content, expected, signal: signal ?? new AbortController().signal };
  for await (const event of on.prompt(request)) events.push(event);
  const last = events.at(-1);
  const proof = events.find((event) => event.type === 'proof');
  return { events, outcome: last?.type === 'ended' ? last.outcome : null, proof: proof?.proof };
}

test('a prompt ends when its result has arrived, Claude is idle, and the file is complete', async () => {
  const one = session();
  claude.onSend = ({ uuid }) => {
    write(uuid, null);
    say(state('running'), answer('a1'), result(uuid), state('idle'));
    setTimeout(() => write('a1', uuid), 60);
  };
  const { outcome, proof } = await prompt(one, 'p1');
  expect(outcome).toEqual({ kind: 'completed', position: '2:a1' });
  expect(proof).toBe('proved');
  expect(await one.position()).toBe('2:a1');
  expect(one.memo).toBe('{"costUsd":1}');
  const copy = Buffer.from((await one.transcript(0)) ?? []);
  expect(copy.toString()).toContain('"p1"');
  expect(JSON.parse(one.memo ?? '')).toMatchObject({ costUsd: 1, bytes: copy.length });
});

test('an answer without tools ends with its result; the next prompt waits until Claude is idle', async () => {
  const one = session();
  const sent: string[] = [];
  claude.onSend = ({ uuid }) => {
    sent.push(uuid);
    write(uuid, uuid === 'p1' ? null : 'p1');
    say(state('running'), result(uuid));
  };
  expect((await prompt(one, 'p1')).outcome).toEqual({ kind: 'completed', position: '1:p1' });
  const second = prompt(one, 'p2', '1:p1');
  await new Promise(setImmediate);
  expect(sent).toEqual(['p1']);
  say(state('idle'));
  expect((await second).outcome).toEqual({ kind: 'completed', position: '2:p2' });
  expect(sent).toEqual(['p1', 'p2']);
});

test('when Claude continues by itself while a prompt waits, it is ended and the prompt is not sent', async () => {
  const one = session();
  const sent: string[] = [];
  claude.onSend = ({ uuid }) => {
    sent.push(uuid);
    write(uuid, null);
    say(state('running'), result(uuid));
  };
  await prompt(one, 'p1');
  const second = prompt(one, 'p2', '1:p1');
  await new Promise(setImmediate);
  say(state('running'), answer('a1'), { ...result('another'), user_message_uuids: [] }, state('idle'));
  const { events, outcome } = await second;
  expect(outcome).toMatchObject({ kind: 'failed', again: true });
  expect(events).toHaveLength(1);
  expect(sent).toEqual(['p1']);
});

test('an answer with tools ends when Claude is idle, because a tool may have started something', async () => {
  const one = session();
  const call = { type: 'tool_use', id: 't1', name: 'Workflow', input: {} };
  claude.onSend = ({ uuid }) => {
    write(uuid, null);
    say(state('running'), { type: 'assistant', message: { id: 'm1', model: 'claude', content: [call] } }, result(uuid));
  };
  let over = false;
  const asked = prompt(one, 'p1').then((told) => {
    over = true;
    return told;
  });
  await new Promise(setImmediate);
  expect(over).toBe(false);
  say({ ...result('another'), user_message_uuids: [] }, state('idle'));
  expect((await asked).outcome).toMatchObject({ kind: 'completed' });
});

test('a Claude that works without a prompt is ended at once, and gets no prompt', async () => {
  const one = session();
  say(state('running'), { type: 'system', subtype: 'status', session_id: ID });
  await new Promise(setImmediate);
  expect(one.alive).toBe(true);
  say(answer('a1'));
  await new Promise(setImmediate);
  expect(one.alive).toBe(false);
  expect(claude.ending).toBe('by SIGKILL');
  expect((await prompt(one, 'p1')).outcome).toMatchObject({ kind: 'failed', again: true });
});

test('a prompt may follow entries that are as new as itself, and no others', async () => {
  write('old', null);
  const one = session({ empty: false });
  claude.onSend = ({ uuid }) => {
    write('reminder', 'old');
    write(uuid, uuid === 'p1' ? 'reminder' : null);
    say(state('running'), result(uuid), state('idle'));
  };
  expect((await prompt(one, 'p1', '1:old')).proof).toBe('proved');
  expect((await prompt(one, 'p2', await one.position())).proof).toBe('refuted');
});

test('the position is unknown when something that was streamed is not in the file', async () => {
  const one = session();
  claude.onSend = ({ uuid }) => {
    write(uuid, null);
    const lost = { type: 'system', subtype: 'session_writes_lost', session_id: ID };
    say(state('running'), answer('a1'), lost, result(uuid), state('idle'));
  };
  const { outcome, events } = await prompt(one, 'p1');
  expect(outcome).toEqual({ kind: 'completed', position: null });
  expect(events.findLast((event) => event.type === 'proof')).toMatchObject({ proof: 'counted' });
  expect(await one.position()).toBeNull();
  expect(await one.transcript(0)).toBeNull();
});

test('entries that are written late count with the next turn, when the file is complete', async () => {
  const one = session();
  const lost = { type: 'system', subtype: 'session_writes_lost', session_id: ID };
  claude.onSend = ({ uuid }) => {
    write(uuid, null);
    say(state('running'), answer('a1'), answer('b1'), lost, result(uuid), state('idle'));
  };
  await prompt(one, 'p1');
  write('a1', 'p1');
  claude.onSend = completes('a1');
  expect((await prompt(one, 'p2')).outcome).toEqual({ kind: 'completed', position: null });
  expect(await one.position()).toBeNull();
  write('b1', 'p1');
  claude.onSend = completes('p2');
  const { outcome } = await prompt(one, 'p3');
  expect(outcome).toEqual({ kind: 'completed', position: '4:p3' });
  expect(await one.position()).toBe('4:p3');
});

const STOPPED: ClaudeMessage = {
  type: 'system',
  subtype: 'informational',
  prompt_submit_outcome: { reason: 'house rules', prompt_kept: false },
  session_id: ID,
};

test('after a first prompt that a hook stopped, the session is empty and the next prompt is proved', async () => {
  const one = session();
  claude.onSend = ({ uuid }) => say(state('running'), STOPPED, result(uuid), state('idle'));
  expect((await prompt(one, 'p1')).outcome).toMatchObject({ kind: 'failed', unsent: true, position: null });
  claude.onSend = completes(null);
  expect((await prompt(one, 'p2')).proof).toBe('proved');
});

test('the position after a stopped prompt includes entries of Claude, and not those of others', async () => {
  write('a0', null);
  const one = session({ empty: false });
  claude.onSend = ({ uuid }) => {
    write('note', 'a0');
    write('p-of-another', 'note');
    say(state('running'), STOPPED, result(uuid), state('idle'));
  };
  expect((await prompt(one, 'p1', '1:a0')).outcome).toMatchObject({ unsent: true, position: '2:note' });
  expect(await one.position()).toBe('3:p-of-another');
});

test('a rewound session is ended when its prompt is not sent, because its file still has the failed one', async () => {
  write('a0', null);
  write('p-failed', 'a0');
  const rewound = { at: 'a0', drops: 'p-failed', position: '1:a0', filePosition: '2:p-failed' };
  const one = session({ empty: false, rewound, storage: { ...storageAt(folder), path: unwritable() } });
  expect(await one.position()).toBe('1:a0');
  expect((await prompt(one, 'p1', '1:a0')).outcome).toMatchObject({ kind: 'failed', unsent: true });
  expect(one.alive).toBe(false);
});

test('nothing is sent when the transcript could not be written', async () => {
  let sent = 0;
  claude.onSend = () => {
    sent += 1;
  };
  const { outcome } = await prompt(session({ storage: { ...storageAt(folder), path: unwritable() } }), 'p1');
  expect(outcome).toMatchObject({ kind: 'failed', code: 'agent_failed', again: false });
  expect(sent).toBe(0);
});

test('a turn is lost when the process ends, with its stderr; after an abort it is cancelled', async () => {
  claude.onSend = () => {
    claude.ending = 'with code 1: no more memory';
    claude.messages.close();
  };
  const lost = await prompt(session(), 'p1');
  expect(lost.outcome).toEqual({ kind: 'lost', message: 'Claude’s process ended with code 1: no more memory' });

  claude = new FakeClaude();
  const abort = new AbortController();
  claude.onSend = () => abort.abort();
  claude.onInterrupt = () => void claude.kill();
  expect((await prompt(session(), 'p2', null, abort.signal)).outcome).toMatchObject({ kind: 'cancelled' });
  expect(claude.interrupts).toBe(1);
});

test('the turn of a version that does not report its state ends with its result', async () => {
  claude.onSend = ({ uuid }) => {
    write(uuid, null);
    say(result(uuid));
  };
  expect((await prompt(session(), 'p1')).outcome).toEqual({ kind: 'completed', position: '1:p1' });
});

test('a session that continues under another id is followed there, with its history', async () => {
  write('old', null);
  const one = session({ empty: false });
  claude.onSend = ({ uuid }) => {
    write('old', null, 'session-2');
    write(uuid, 'old', 'session-2');
    say(state('running', 'session-2'), result(uuid, 'session-2'), state('idle', 'session-2'));
  };
  const { events, proof } = await prompt(one, 'p1', '1:old');
  expect(events).toContainEqual({ type: 'session', id: 'session-2' });
  expect(proof).toBe('proved');
  expect(one.id).toBe('session-2');
  expect(await one.position()).toBe('2:p1');
});

test('a file that was deleted during a turn proves nothing', async () => {
  write('old', null);
  const one = session({ empty: false });
  claude.onSend = ({ uuid }) => {
    rmSync(fileOf(ID));
    write(uuid, 'old');
    write('a1', uuid);
    say(state('running'), answer('a1'), result(uuid), state('idle'));
  };
  const { outcome, events } = await prompt(one, 'p1', '1:old');
  expect(outcome).toEqual({ kind: 'completed', position: null });
  expect(events.findLast((event) => event.type === 'proof')).toMatchObject({ proof: 'counted' });
});

test('a file that was replaced is read again from its beginning', async () => {
  mkdirSync(folder, { recursive: true });
  write('old', null);
  const one = session({ empty: false });
  expect(await one.position()).toBe('1:old');
  rmSync(fileOf(ID));
  expect(await one.position()).toBeNull();
  write('other', null);
  expect(await one.position()).toBe('1:other');
});

test('with the result, Claude reports how full its context is, if it knows the window of its model', async () => {
  const windows: number[] = [];
  const one = session({ onWindow: (tokens) => windows.push(tokens) });
  const init = { type: 'system', subtype: 'init', session_id: ID, model: 'claude-opus' };
  const said = answer('a1');
  const used = { ...said, message: { ...(said.message as object), usage: { input_tokens: 90, output_tokens: 10 } } };
  const reported = async (id: string, model: object) => {
    claude.onSend = ({ uuid }) => {
      write(uuid, null);
      write('a1', uuid);
      say(state('running'), init, used, { ...result(uuid), modelUsage: { 'claude-opus': model } }, state('idle'));
    };
    const { events } = await prompt(one, id);
    const updates = events.flatMap((event) => (event.type === 'update' ? [event.update] : []));
    return updates.filter(({ sessionUpdate }) => sessionUpdate === 'usage_update');
  };
  const update = { sessionUpdate: 'usage_update', used: 100, size: 200_000 };
  expect(await reported('p1', { contextWindow: 200_000 })).toEqual([update]);
  expect(await reported('p2', { contextWindow: 200_000, costBasis: 'unknown' })).toEqual([]);
  expect(windows).toEqual([200_000]);
});

test('models, modes and efforts are announced with the first turn, and again only when they have changed', async () => {
  const one = session();
  claude.models.push({ value: 'opus', displayName: 'Opus' }, 'not a model');
  const init = (permissionMode: string): ClaudeMessage => {
    return { type: 'system', subtype: 'init', session_id: ID, model: 'claude-opus', permissionMode };
  };
  const announced = async (id: string, mode: string) => {
    claude.onSend = ({ uuid }) => {
      write(uuid, null);
      say(state('running'), init(mode), result(uuid), state('idle'));
    };
    const { events } = await prompt(one, id);
    return events.flatMap((event) => (event.type === 'update' ? [event.update] : []));
  };
  expect(await announced('p1', 'default')).toMatchObject([
    { sessionUpdate: 'current_mode_update', currentModeId: 'default', availableModes: MODES.map((id) => ({ id })) },
    {
      sessionUpdate: 'config_option_update',
      configOptions: [
        { id: 'model', currentValue: 'claude-opus', options: [{ value: 'opus', name: 'Opus' }] },
        { id: 'effort', currentValue: null },
      ],
    },
  ]);
  expect(await announced('p2', 'default')).toEqual([]);
  expect(await announced('p3', 'plan')).toMatchObject([{ currentModeId: 'plan' }, {}]);
});
