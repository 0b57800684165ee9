import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ask, effects, send, TestSandboxes, text } from '../../../test/contracts/agent-sandbox.ts';
import type { AgentEvent, AgentSession } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { scriptedAgent } from './adapter.ts';
import { SCRIPTED_DEFAULTS, type ScriptedOptions } from './options.ts';

let sandboxes: TestSandboxes;
let sandbox: OpenSandbox;
beforeEach(async () => {
  sandboxes = new TestSandboxes();
  sandbox = await sandboxes.sandbox();
});
afterEach(() => sandboxes.dispose());

const open = (options: Partial<ScriptedOptions> = {}) =>
  sandboxes.open(scriptedAgent({ name: 'scripted', options }), sandbox);
const updates = (events: readonly AgentEvent[]) =>
  events.flatMap((event) => (event.type === 'update' ? [event.update as Record<string, unknown>] : []));
const RECORD =
  '<conversation-record 7>\n[turn 1] person:\nThe codeword is amber.\n/tool write early.log\n</conversation-record 7>';

describe('what the agent has in its context', () => {
  test('codewords are listed in order, each once', async () => {
    const session = await open();
    await ask(session, 'The codeword is birch. Another codeword: amber-2');
    await ask(session, 'Again, the codeword is birch!');
    expect((await ask(session, 'What is the codeword?')).reply).toBe('I have seen these codewords: birch, amber-2.');
    expect((await ask(await open(), 'Which codewords have you seen?')).reply).toBe('I have seen no codewords.');
  });

  test('the content of a delivered record is known, and its commands are not run', async () => {
    const session = await open();
    const { reply, events } = await ask(session, text(RECORD, 'Which codewords have you seen?'));
    expect(reply).toContain('amber');
    expect(updates(events)).toHaveLength(1);
    expect(existsSync(join(sandbox.work, 'early.log'))).toBe(false);
    expect((await ask(session, 'How many messages?')).reply).toBe(
      'I was given 2 prompts; a conversation record was delivered.',
    );
  });

  test('a prompt with only a record runs no commands', async () => {
    await ask(await open(), [...text(RECORD), { type: 'image', data: '', mimeType: 'image/png' }]);
    expect(existsSync(join(sandbox.work, 'early.log'))).toBe(false);
  });

  test('the text of an embedded resource is in the context', async () => {
    const resource = { uri: 'x:record', text: 'The codeword is cedar.' };
    const { reply } = await ask(await open(), [{ type: 'resource', resource }, ...text('Which codewords?')]);
    expect(reply).toContain('cedar');
  });

  test('the system prompt is empty, and the agent reports its directory and session', async () => {
    const session = await open();
    expect((await ask(session, 'What is your system prompt?')).reply).toBe('My system prompt is empty.');
    expect((await ask(session, 'How many messages?')).reply).toContain('2 prompts; no conversation record');
    expect((await ask(session, 'Repeat the first prompt')).reply).toBe('What is your system prompt?');
    expect((await ask(session, 'Which session is this?')).reply).toContain(session.id);
    expect((await ask(session, 'Which directory?')).reply).toContain(sandbox.work);
    expect((await ask(session, 'Hello there')).reply).toBe('Noted: Hello there');
  });
});

describe('what the agent does', () => {
  test('/say /think /title', async () => {
    const { events, reply } = await ask(await open(), '/think hm\n/title Big plans\n/say First.\n/say Second.');
    expect(reply).toBe('First.Second.');
    expect(updates(events)).toMatchObject([
      { sessionUpdate: 'agent_thought_chunk', content: { text: 'hm' } },
      { sessionUpdate: 'session_info_update', title: 'Big plans' },
      { sessionUpdate: 'agent_message_chunk' },
      { sessionUpdate: 'agent_message_chunk' },
    ]);
  });

  test('/tool has one effect, between its beginning and its end', async () => {
    const { events, reply } = await ask(await open(), '/tool write out.log');
    expect(updates(events).slice(0, 2)).toMatchObject([
      { sessionUpdate: 'tool_call', title: 'write', status: 'in_progress', locations: [{ path: 'out.log' }] },
      { sessionUpdate: 'tool_call_update', status: 'completed' },
    ]);
    expect(reply).toBe('Done.');
    expect(effects(join(sandbox.work, 'out.log'))).toBe(1);
  });

  test('/tool on a file that cannot be written fails as a tool, and the turn continues', async () => {
    const { events, outcome } = await ask(await open(), '/tool write no/such/dir.log');
    expect(updates(events)[1]).toMatchObject({ status: 'failed', rawOutput: expect.stringContaining('ENOENT') });
    expect(outcome.kind).toBe('completed');
  });

  test('/slow-tool has had its effect when it is cancelled, and reports a failure', async () => {
    const abort = new AbortController();
    const seen: AgentEvent[] = [];
    for await (const event of send(await open(), '/slow-tool write out.log 60000', { signal: abort.signal })) {
      seen.push(event);
      if (event.type === 'update') abort.abort();
    }
    expect(updates(seen)).toMatchObject([{ status: 'in_progress' }, { status: 'failed', rawOutput: 'cancelled' }]);
    expect(seen.at(-1)).toMatchObject({ outcome: { kind: 'cancelled' } });
    expect(effects(join(sandbox.work, 'out.log'))).toBe(1);
  });

  test('/update is reported as it is', async () => {
    const update = { sessionUpdate: 'plan', entries: [{ content: 'First', status: 'pending', priority: 'medium' }] };
    const { events } = await ask(await open(), `/update ${JSON.stringify(update)}\n/say Done.`);
    expect(updates(events)).toContainEqual(update);
  });

  test('/stream comes in chunks over time', async () => {
    const begun = performance.now();
    const { events } = await ask(await open(), '/stream 4 20');
    expect(updates(events)).toHaveLength(4);
    expect(performance.now() - begun).toBeGreaterThan(55);
  });

  test('/await continues when the file exists, and ends when it is cancelled', async () => {
    const session = await open();
    const abort = new AbortController();
    const seen: AgentEvent[] = [];
    for await (const event of send(session, '/say begun\n/await go\n/say done')) {
      seen.push(event);
      if (event.type === 'update') writeFileSync(join(sandbox.work, 'go'), '');
    }
    expect(updates(seen)).toHaveLength(2);
    for await (const event of send(session, '/say begun\n/await never', { signal: abort.signal })) {
      seen.push(event);
      if (event.type === 'update') setTimeout(() => abort.abort(), 50);
    }
    expect(seen.at(-1)).toMatchObject({ outcome: { kind: 'cancelled' } });
  });

  async function answered(session: AgentSession, prompt: string, optionId: string | null): Promise<AgentEvent[]> {
    const events: AgentEvent[] = [];
    for await (const event of send(session, prompt)) {
      events.push(event);
      if (event.type === 'permission') session.answer(event.id, optionId);
    }
    return events;
  }

  test('/ask: allowed, the tool runs; denied or withdrawn, it does not, and the turn continues', async () => {
    const session = await open();
    const prompt = '/ask May I?\n/tool write out.log\n/say On I go.';
    const allowed = await answered(session, prompt, 'allow');
    expect(allowed.find((event) => event.type === 'permission')).toMatchObject({
      title: 'May I?',
      toolCall: { title: 'write', locations: [{ path: 'out.log' }] },
      options: [{ kind: 'allow_once' }, { kind: 'reject_once' }],
    });
    expect(effects(join(sandbox.work, 'out.log'))).toBe(1);
    for (const answer of ['reject', null]) {
      const denied = await answered(session, prompt, answer);
      expect(JSON.stringify(denied)).toContain('Permission denied: May I?');
      expect(JSON.stringify(denied)).toContain('On I go.');
      expect(denied.at(-1)).toMatchObject({ outcome: { kind: 'completed' } });
    }
    expect(effects(join(sandbox.work, 'out.log'))).toBe(1);
  });

  test('/ask! fails the turn when it is denied', async () => {
    const denied = await answered(await open(), '/ask! May I?\n/tool write out.log', 'reject');
    expect(denied.at(-1)).toMatchObject({ outcome: { kind: 'failed', code: 'permission_denied' } });
    expect(effects(join(sandbox.work, 'out.log'))).toBe(0);
  });

  test('/fail fails with the code; with a number only that many times, in any process', async () => {
    const failed = (code: string, again: boolean) => ({ kind: 'failed', code, again });
    expect((await ask(await open(), '/fail agent_failed')).outcome).toMatchObject(failed('agent_failed', false));
    expect((await ask(await open(), '/fail too_long')).outcome).toMatchObject(failed('too_long', false));
    expect((await ask(await open(), '/fail agent_failed 2')).outcome).toMatchObject(failed('agent_failed', true));
    expect((await ask(await open(), '/fail agent_failed 2')).outcome).toMatchObject(failed('agent_failed', true));
    expect((await ask(await open(), '/fail agent_failed 2')).outcome).toEqual({ kind: 'completed' });
  });

  test('/usage is reported; without it, the size of the context', async () => {
    const session = await open();
    const usageOf = async (prompt: string) =>
      (await ask(session, prompt)).events.find((event) => event.type === 'usage');
    expect(await usageOf('/usage 120 34')).toEqual({
      type: 'usage',
      usage: { inputTokens: 120, outputTokens: 34, modelCalls: 1 },
    });
    expect((await usageOf('/usage 1 2 50'))?.usage).toMatchObject({ inputTokens: 1, costMicros: 50 });
    const spent = (await ask(session, '/spent 77')).events.find((event) => event.type === 'update');
    expect(spent?.update).toEqual({ sessionUpdate: '_throughline/spent', inputTokens: 77 });
    const usage = (await usageOf('x'.repeat(3_000)))?.usage;
    expect(usage?.inputTokens).toBeGreaterThan(1_000);
    expect(usage?.modelCalls).toBe(1);
  });

  test('a prompt that is sent twice runs once', async () => {
    const session = await open();
    const first = await ask(session, '/tool write out.log', { id: 'same' });
    const second = await ask(session, '/tool write out.log', { id: 'same' });
    expect([first.outcome, second.outcome]).toEqual([{ kind: 'completed' }, { kind: 'completed' }]);
    expect(effects(join(sandbox.work, 'out.log'))).toBe(1);
  });
});

describe('its first message', () => {
  const start = () => spawn(process.execPath, [fileURLToPath(new URL('scripted-agent.js', import.meta.url))]);

  test('may be longer than one read, and split within a character', async () => {
    const program = start();
    const system = 'ä'.repeat(100_000);
    const message = { type: 'open', how: 'new', id: null, dir: sandbox.state, noTools: false, system };
    program.stdin.write(`${JSON.stringify({ ...message, options: SCRIPTED_DEFAULTS })}\n`);
    const prompt = { type: 'prompt', id: 'p', content: text('What is your system prompt?') };
    const said: string[] = [];
    for await (const line of createInterface({ input: program.stdout })) {
      said.push(line);
      if (line.includes('"opened"')) program.stdin.write(`${JSON.stringify(prompt)}\n`);
      if (line.includes('"ended"')) program.stdin.end();
    }
    expect(said.join('\n')).toContain(system);
  });

  test('may be missing: the agent ends when its input ends', async () => {
    const program = start();
    program.stdin.end();
    expect(await once(program, 'exit')).toEqual([0, null]);
  });
});
