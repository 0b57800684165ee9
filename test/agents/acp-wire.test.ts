// What goes over the wire, as it is: settings that are said again, updates that nobody knows, programs that speak otherwise.
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { allEvents, ended, event } from '../e2e/support/conversations.ts';
import { ownAgent } from './acp-agents.ts';
import { bash } from './acp-contract.ts';
import { AcpHome } from './acp-home.ts';

const OPTIONS = {
  mode: 'careful',
  config: { effort: 'high' },
  mcpServers: [{ name: 'notes', command: '/bin/true', args: [], env: [] }],
  directories: ['/'],
};

const raw = (said: readonly string[]) => (model: { url: string }, root: string) => {
  const settings = ownAgent(model, root, ['raw'], OPTIONS);
  return { ...settings, model: 'big', env: { ...settings.env, SAID: JSON.stringify(said) } };
};

const requestsOf = (home: AcpHome): { method: string; params: Record<string, unknown> }[] =>
  readFileSync(join(home.homeOf('agent'), 'requests.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('an agent that says more than the protocol knows', { timeout: 60_000 }, () => {
  test('every update is kept as it came; what belongs to no turn, or to another session, passes for no answer', async () => {
    await using home = await AcpHome.make({ agent: raw([]) });
    const tl = await home.open();
    const chat = tl.conversation('chat');
    expect((await chat.ask('One.')).reply).toBe('Heard: One.');
    const { reply, turn } = await chat.ask('Two.');
    expect(reply).toBe('Heard: Two.');
    const events = (await allEvents(tl.engine, 'chat')).filter(
      (one) => one.kind === 'turn.update' && one.turn === turn.id,
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

  test('what it says to greet a new session passes for no answer either, and is kept', async () => {
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

  test('mode, config, model, servers and directories are said again after a restore', async () => {
    await using home = await AcpHome.make({ agent: raw(['One.']) });
    const tl = await home.open();
    await tl.conversation('chat').ask('One.');
    const before = requestsOf(home);
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask('Two.');
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
    const after = requestsOf(home).slice(before.length);
    const settingsIn = (requests: typeof before) =>
      requests
        .filter(({ method }) => /session\/(?:new|load|set_)/.test(method))
        .map(({ method, params: { sessionId: _, cwd: __, ...params } }) => [method, params]);
    const place = { mcpServers: OPTIONS.mcpServers, additionalDirectories: OPTIONS.directories };
    const settings = [
      ['session/set_config_option', { configId: 'model', value: 'big' }],
      ['session/set_config_option', { configId: 'effort', value: 'high' }],
      ['session/set_mode', { modeId: 'careful' }],
    ];
    expect(settingsIn(before)).toEqual([['session/new', place], ...settings]);
    expect(settingsIn(after)).toEqual([['session/load', place], ...settings]);
  });

  test.each([
    [{ mcpServers: [{ type: 'http', name: 'notes', url: 'http://127.0.0.1:9' }] }, /no MCP server of the type "http"/],
    [{ directories: ['/tmp'] }, /no further directories/],
    [{ mode: 'no-such-mode' }, /Invalid params|no-such-mode/],
  ])('what the settings ask of it and it cannot do is refused with the reason: %j', async (options, why) => {
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['honest'], options) });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send('Hello.').accepted;
    expect((await ended(tl.engine, turn)).failure?.message).toMatch(why);
    expect(home.model.requests).toEqual([]);
  });

  test('a session that somebody else has used is not used again', async () => {
    await using home = await AcpHome.make({ agent: raw(['One.', 'Theirs.']) });
    const tl = await home.open();
    await tl.conversation('chat').ask('One.');
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask('Two.');
    expect(receipt).toMatchObject({
      rung: 'transcript',
      carried: 1,
      tried: [{ rung: 'resume', failure: expect.stringMatching(/1 more prompt/) }],
    });
    expect((await again.engine.sessions('chat')).map(({ state }) => state)).toEqual(['live', 'diverged']);
    // That is nobody's lie.
    expect((await again.engine.agents())[0]?.traits).toMatchObject({ load: true });
  });
});

describe('a program that is no agent', { timeout: 60_000 }, () => {
  test.each([
    [
      'prints something else',
      'echo "Usage: me"; echo "wrong option" >&2; exit 2',
      /with code 2: wrong option.*it printed "Usage: me".*is not the Agent Client Protocol/,
    ],
    ['says nothing', 'sleep 60', /the agent’s process was ended: it did not answer within 1000 ms/],
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
        return { adapter: 'acp', command: [program], options: { openMs: 1_000 } };
      },
    });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send('Hello.').accepted;
    const { failure } = await ended(tl.engine, turn);
    expect(failure).toMatchObject({ code: 'agent_unavailable', message: expect.stringMatching(why) });
    expect(failure?.hint).toMatch(/by hand/);
  });
});

describe('tools', { timeout: 60_000 }, () => {
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

  test('what a terminal showed is text in the record', async () => {
    const inTerminal = JSON.stringify({ terminal: true });
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['honest', inTerminal]) });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').ask(bash('echo from the terminal'));
    const { records } = await tl.engine.export('chat');
    const tool = records.find(({ n }) => n === turn.n)?.parts.find(({ type }) => type === 'tool');
    expect(tool).toMatchObject({ status: 'completed', output: 'from the terminal\n' });
  });
});
