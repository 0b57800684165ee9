// The messages between Throughline and ACP agents: settings, unknown updates, cancels, permissions, and programs that are no agents.
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { allEvents, ended, event } from '../../e2e/support/conversations.ts';
import { bash, smallAgent } from '../support/acp-agents.ts';
import { AcpHome } from '../support/acp-home.ts';

// As pi, it sends a banner for a new session.
const OPTIONS = {
  agent: 'pi',
  auth: 'key',
  mode: 'careful',
  config: { effort: 'high' },
  mcpServers: [{ name: 'notes', command: '/bin/true', args: [], env: [] }],
  directories: ['/'],
};

/** The agent `raw`. `prompts`: the history that it sends when it loads a session. */
const raw =
  (prompts: readonly string[], options: object = {}) =>
  (model: { url: string }, root: string) => {
    const settings = smallAgent(model, root, ['raw'], { ...OPTIONS, ...options });
    return { ...settings, model: 'big', env: { ...settings.env, PROMPTS: JSON.stringify(prompts) } };
  };

const requestsOf = (home: AcpHome): { method: string; params: Record<string, unknown> }[] =>
  readFileSync(join(home.homeOf('agent'), 'requests.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** The requests that set these options in every session, in this order. */
const SETTINGS = [
  ['session/set_config_option', { configId: 'model', value: 'big' }],
  ['session/set_config_option', { configId: 'effort', value: 'high' }],
  ['session/set_mode', { modeId: 'careful' }],
];

function settingsIn(requests: ReturnType<typeof requestsOf>, methods = /^authenticate$|^session\/(?:new|load|set_)/) {
  return requests
    .filter(({ method }) => methods.test(method))
    .map(({ method, params: { sessionId: _, cwd: __, ...params } }) => [method, params]);
}

describe('an agent that sends more than the protocol defines', () => {
  test('all updates are recorded unchanged; those between turns or of another session are not part of the answer', async () => {
    await using home = await AcpHome.make({ agent: raw([]) });
    const tl = await home.open();
    const chat = tl.conversation('chat');
    expect((await chat.ask('One.')).reply).toBe('Answer to: One.');
    const { reply, turn } = await chat.ask('Two.');
    expect(reply).toBe('Answer to: Two.');
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
      { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Answer to: Two.' } },
    ]);
  });

  test('a banner for a new session is recorded and is not part of the answer', async () => {
    await using home = await AcpHome.make({ agent: raw([]) });
    const tl = await home.open();
    expect((await tl.conversation('chat').ask('One.')).reply).toBe('Answer to: One.');
    const betweenTurns = (await allEvents(tl.engine, 'chat')).flatMap((one) => {
      const { update } = one.payload as { update?: { sessionUpdate: string; update: unknown } };
      return update?.sessionUpdate === '_acp/between_turns' ? [update.update] : [];
    });
    expect(betweenTurns).toEqual([
      { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'raw v1.0.0\n---\n' } },
    ]);
  });
});

test('mode, config, model, servers and directories are set again when a session is loaded', async () => {
  await using home = await AcpHome.make({ agent: raw(['One.']) });
  const tl = await home.open();
  await tl.conversation('chat').ask('One.');
  const before = requestsOf(home);
  await tl.close();
  const { receipt } = await (await home.open()).conversation('chat').ask('Two.');
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
  const after = requestsOf(home).slice(before.length);
  const atOpen = { mcpServers: OPTIONS.mcpServers, additionalDirectories: OPTIONS.directories };
  expect(settingsIn(before)).toEqual([['authenticate', { methodId: 'key' }], ['session/new', atOpen], ...SETTINGS]);
  expect(settingsIn(after)).toEqual([['authenticate', { methodId: 'key' }], ['session/load', atOpen], ...SETTINGS]);
  // The first process closed its session when Throughline was closed.
  const sessionId = receipt.sessionId ?? '';
  expect(requestsOf(home)[before.length]).toEqual({ method: 'session/close', params: { sessionId } });
});

test('a session without tools has no MCP servers, and gets them back with its tools', async () => {
  const noTools = { version: '1.0.0', mode: 'quiet' };
  await using home = await AcpHome.make({ agent: raw(['One.'], { noTools }) });
  const tl = await home.open();
  await tl.conversation('chat').ask('One.');
  const before = requestsOf(home).length;
  const { receipt } = await tl.conversation('chat').ask('Two.', { restore: { rebuild: true, rung: 'replay' } });
  expect(receipt).toMatchObject({ rung: 'replay', carried: 1 });
  const directories = { additionalDirectories: OPTIONS.directories };
  const allButMode = SETTINGS.slice(0, -1);
  expect(settingsIn(requestsOf(home).slice(before), /^session\/(?:new|load|set_|prompt)/)).toEqual([
    ['session/new', { ...directories, mcpServers: [] }],
    ...allButMode,
    ['session/set_mode', { modeId: 'quiet' }],
    ['session/prompt', { prompt: [{ type: 'text', text: 'One.' }] }],
    ['session/set_mode', { modeId: 'careful' }],
    ['session/load', { ...directories, mcpServers: OPTIONS.mcpServers }],
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
])('settings that the agent does not support fail the turn with the reason: %j', async (options, why) => {
  await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['complete'], options) });
  const tl = await home.open();
  const { turn } = await tl.conversation('chat').send('Hello.').accepted;
  expect((await ended(tl.engine, turn)).failure?.message).toMatch(why);
  expect(home.model.requests).toEqual([]);
});

test.each([
  ['after our last turn', ['One.', 'Two.', 'Theirs.']],
  ['between two of our turns', ['One.', 'Theirs.', 'Two.']],
])('a session that somebody else has used %s is not used again', async (_, history) => {
  await using home = await AcpHome.make({ agent: raw(history) });
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
  // The agent itself is still trusted to load sessions.
  expect((await again.engine.agents())[0]?.traits).toMatchObject({ load: true });
});

const SILENT = 'sleep 600';

describe('a program that is not an agent', () => {
  test.each([
    [
      'prints a usage message and exits',
      'echo "Usage: me"; echo "wrong option" >&2; exit 2',
      /with code 2: wrong option.*it printed "Usage: me".*is not the Agent Client Protocol/,
    ],
    ['prints nothing', SILENT, /the agent’s process was ended: it did not answer within 1000 ms/],
    [
      'uses another version of the protocol',
      'read line; echo \'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":9}}\'; sleep 60',
      /speaks version 9 of the protocol/,
    ],
  ])('%s: the turn fails with the reason', async (_, script, why) => {
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
    ['while the agent answers', {}, 'model: stream 10000 20ms', 'turn.update'],
    ['while it waits for a permission', { asksPermission: true }, bash('echo line >> effects.log'), 'permission.asked'],
  ] as const)('%s: the agent stops by itself, and its process is kept', async (_, behaviour, prompt, kind) => {
    // So long that the process is not ended because of a slow machine.
    const options = { cancelGraceMs: 60_000 };
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['complete', JSON.stringify(behaviour)], options),
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
  test('run only if the permission is allowed', async () => {
    const behaviour = JSON.stringify({ asksPermission: true });
    await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['complete', behaviour]) });
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    for (const [kind, runs] of [
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
      expect(existsSync(join(cwd, 'effects.log'))).toBe(runs);
    }
  });

  test('that run in a terminal have its text in the record', async () => {
    const behaviour = JSON.stringify({ terminal: true });
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['complete', behaviour]),
    });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').ask(bash('echo from the terminal'));
    const { records } = await tl.engine.export('chat');
    const tool = records.find(({ n }) => n === turn.n)?.parts.find(({ type }) => type === 'tool');
    expect(tool).toMatchObject({ status: 'completed', output: 'from the terminal\n' });
  });
});
