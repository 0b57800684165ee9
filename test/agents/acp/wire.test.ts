// What goes over the wire: settings that are sent again, unknown updates, programs that are no agents.
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { allEvents, ended, event } from '../../e2e/support/conversations.ts';
import { ownAgent } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';
import { bash } from './contract/contract.ts';

// It greets a new session as pi does.
const OPTIONS = {
  agent: 'pi',
  auth: 'key',
  mode: 'careful',
  config: { effort: 'high' },
  mcpServers: [{ name: 'notes', command: '/bin/true', args: [], env: [] }],
  directories: ['/'],
};

const raw =
  (said: readonly string[], options: object = {}) =>
  (model: { url: string }, root: string) => {
    const settings = ownAgent(model, root, ['raw'], { ...OPTIONS, ...options });
    return { ...settings, model: 'big', env: { ...settings.env, SAID: JSON.stringify(said) } };
  };

const requestsOf = (home: AcpHome): { method: string; params: Record<string, unknown> }[] =>
  readFileSync(join(home.homeOf('agent'), 'requests.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** What is set in every session, in this order. */
const SETTINGS = [
  ['session/set_config_option', { configId: 'model', value: 'big' }],
  ['session/set_config_option', { configId: 'effort', value: 'high' }],
  ['session/set_mode', { modeId: 'careful' }],
];

function settingsIn(requests: ReturnType<typeof requestsOf>, wanted = /^authenticate$|^session\/(?:new|load|set_)/) {
  return requests
    .filter(({ method }) => wanted.test(method))
    .map(({ method, params: { sessionId: _, cwd: __, ...params } }) => [method, params]);
}

describe('an agent that sends more than the protocol defines', () => {
  test('every update is recorded as it came; those of no turn or of another session are not part of the answer', async () => {
    await using home = await AcpHome.make({ agent: raw([]) });
    const tl = await home.open();
    const chat = tl.conversation('chat');
    expect((await chat.ask('One.')).reply).toBe('Heard: One.');
    const { reply, turn } = await chat.ask('Two.');
    expect(reply).toBe('Heard: Two.');
    const events = (await allEvents(tl.engine, 'chat')).filter(
      (one) => one.kind === 'turn.update' && one.turnId === turn.id,
    );
    expect(events.map((one) => (one.payload as { update: unknown }).update)).toEqual([
      { sessionUpdate: 'session_info_update', title: 'Afterwards' },
      {
        sessionUpdate: '_acp/between_turns',
        update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'too late' } },
      },
      { sessionUpdate: '_acp/notification', method: '_vendor/later', params: { value: 2 } },
      { sessionUpdate: 'weather_update', sky: 'blue', _meta: { since: 1 } },
      {
        sessionUpdate: 'tool_call_update',
        toolCallId: 't1',
        title: 'Look',
        status: 'completed',
        extra: { kept: true },
      },
      {
        sessionUpdate: '_acp/other_session',
        sessionId: 'another-session',
        update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'not ours' } },
      },
      { sessionUpdate: '_acp/notification', method: '_vendor/event', params: { value: 1 } },
      { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Heard: Two.' } },
    ]);
  });

  test('a banner for a new session is recorded and is not part of the answer', async () => {
    await using home = await AcpHome.make({ agent: raw([]) });
    const tl = await home.open();
    expect((await tl.conversation('chat').ask('One.')).reply).toBe('Heard: One.');
    const apart = (await allEvents(tl.engine, 'chat')).flatMap((one) => {
      const { update } = one.payload as { update?: { sessionUpdate: string; update: unknown } };
      return update?.sessionUpdate === '_acp/between_turns' ? [update.update] : [];
    });
    expect(apart).toEqual([
      { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'raw v1.0.0\n---\n' } },
    ]);
  });

  test('mode, config, model, servers and directories are set again after a restore', async () => {
    await using home = await AcpHome.make({ agent: raw(['One.']) });
    const tl = await home.open();
    await tl.conversation('chat').ask('One.');
    const before = requestsOf(home);
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask('Two.');
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
    const after = requestsOf(home).slice(before.length);
    const place = { mcpServers: OPTIONS.mcpServers, additionalDirectories: OPTIONS.directories };
    expect(settingsIn(before)).toEqual([['authenticate', { methodId: 'key' }], ['session/new', place], ...SETTINGS]);
    expect(settingsIn(after)).toEqual([['authenticate', { methodId: 'key' }], ['session/load', place], ...SETTINGS]);
    // A session that is put aside is closed.
    const sessionId = receipt.sessionId ?? '';
    expect(requestsOf(home)[before.length]).toEqual({ method: 'session/close', params: { sessionId } });
  });

  test('a session without tools has no MCP servers, and gets them back with its tools', async () => {
    const noTools = { version: '1.0.0', mode: 'quiet' };
    await using home = await AcpHome.make({ agent: raw(['One.'], { noTools }) });
    const tl = await home.open();
    await tl.conversation('chat').ask('One.');
    const before = requestsOf(home).length;
    const { receipt } = await tl.conversation('chat').ask('Two.', { restore: { rung: 'replay' } });
    expect(receipt).toMatchObject({ rung: 'replay', carried: 1 });
    const [place, rest] = [{ additionalDirectories: OPTIONS.directories }, SETTINGS.slice(0, -1)];
    expect(settingsIn(requestsOf(home).slice(before), /^session\/(?:new|load|set_|prompt)/)).toEqual([
      ['session/new', { ...place, mcpServers: [] }],
      ...rest,
      ['session/set_mode', { modeId: 'quiet' }],
      ['session/prompt', { prompt: [{ type: 'text', text: 'One.' }] }],
      ['session/set_mode', { modeId: 'careful' }],
      ['session/load', { ...place, mcpServers: OPTIONS.mcpServers }],
      ...SETTINGS,
      ['session/prompt', { prompt: [{ type: 'text', text: 'Two.' }] }],
    ]);
  });

  test.each([
    [
      { mcpServers: [{ type: 'http', name: 'notes', url: 'http://127.0.0.1:9' }] },
      /does not support MCP servers of the type "http"/,
    ],
    [{ directories: ['/tmp'] }, /does not support additional directories/],
    [{ mode: 'no-such-mode' }, /Invalid params|no-such-mode/],
  ])('settings that it does not support are refused with the reason: %j', async (options, why) => {
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['honest'], options) });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send('Hello.').accepted;
    expect((await ended(tl.engine, turn)).failure?.message).toMatch(why);
    expect(home.model.requests).toEqual([]);
  });

  test.each([
    ['since', ['One.', 'Two.', 'Theirs.']],
    ['while it was warm', ['One.', 'Theirs.', 'Two.']],
  ])('a session that somebody else has used %s is not used again', async (_, said) => {
    await using home = await AcpHome.make({ agent: raw(said) });
    const tl = await home.open();
    for (const prompt of ['One.', 'Two.']) await tl.conversation('chat').ask(prompt);
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask('Three.');
    expect(receipt).toMatchObject({
      rung: 'transcript',
      carried: 2,
      tried: [{ rung: 'resume', failure: expect.stringMatching(/1 more prompt/) }],
    });
    expect((await again.engine.sessions('chat')).map(({ state }) => state)).toEqual(['live', 'diverged']);
    // The agent is still trusted.
    expect((await again.engine.agents())[0]?.traits).toMatchObject({ load: true });
  });
});

const SILENT = 'sleep 600';

describe('a program that is not an agent', () => {
  test.each([
    [
      'prints something else',
      'echo "Usage: me"; echo "wrong option" >&2; exit 2',
      /with code 2: wrong option.*it printed "Usage: me".*is not the Agent Client Protocol/,
    ],
    ['says nothing', SILENT, /the agent’s process was ended: it did not answer within 1000 ms/],
    [
      'speaks another version',
      'read line; echo \'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":9}}\'; sleep 60',
      /speaks version 9 of the protocol/,
    ],
  ])('%s: it is not available, and the reason is given', async (_, script, why) => {
    await using home = await AcpHome.make({
      agent: (_model, root) => {
        const program = join(root, 'program');
        writeFileSync(program, `#!/bin/sh\n${script}\n`);
        chmodSync(program, 0o755);
        return { adapter: 'acp', command: [program], ...(script === SILENT && { options: { openMs: 1_000 } }) };
      },
    });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send('Hello.').accepted;
    const { failure } = await ended(tl.engine, turn);
    expect(failure).toMatchObject({ code: 'agent_unavailable', message: expect.stringMatching(why) });
    expect(failure?.hint).toMatch(/by hand/);
  });
});

describe('a turn that is cancelled', () => {
  test.each([
    ['while the agent talks', {}, 'model: stream 10000 20ms', 'turn.update'],
    ['while it waits for a permission', { asks: true }, bash('echo line >> effects.log'), 'permission.asked'],
  ] as const)('%s: the agent stops, and need not be ended for it', async (_, behaviour, prompt, kind) => {
    await using home = await AcpHome.make({
      agent: (model, root) => ownAgent(model, root, ['honest', JSON.stringify(behaviour)], { cancelGraceMs: 60_000 }),
    });
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    const { turn } = await chat.send(prompt, { permissions: 'ask' }).accepted;
    await event(tl.engine, 'chat', kind, { turn: turn.id });
    await tl.engine.cancel(turn.id);
    expect((await ended(tl.engine, turn)).state).toBe('cancelled');
    expect((await chat.ask('Go on.')).receipt.rung).toBe('live');
    expect(existsSync(join(cwd, 'effects.log'))).toBe(false);
  });
});

describe('tools', () => {
  test('a permission reaches a person, and the answer the agent', async () => {
    const asking = JSON.stringify({ asks: true });
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['honest', asking]) });
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    for (const [kind, seen] of [
      ['reject_once', false],
      ['allow_once', true],
    ] as const) {
      const { turn } = await chat.send(bash('echo line >> effects.log')).accepted;
      await event(tl.engine, 'chat', 'permission.asked', { turn: turn.id });
      const [permission] = await tl.engine.permissions({ conversation: 'chat', open: true });
      expect(permission?.title).toContain('echo line');
      const option = permission?.options.find((one) => one.kind === kind);
      await tl.engine.answer(permission?.id ?? '', option?.optionId ?? '');
      expect((await ended(tl.engine, turn)).state).toBe('completed');
      expect(existsSync(join(cwd, 'effects.log'))).toBe(seen);
    }
  });

  test('the text of a terminal is in the record', async () => {
    const inTerminal = JSON.stringify({ terminal: true });
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['honest', inTerminal]) });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').ask(bash('echo from the terminal'));
    const { records } = await tl.engine.export('chat');
    const tool = records.find(({ n }) => n === turn.n)?.parts.find(({ type }) => type === 'tool');
    expect(tool).toMatchObject({ status: 'completed', output: 'from the terminal\n' });
  });
});
