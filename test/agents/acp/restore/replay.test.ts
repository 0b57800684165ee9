// A replay sends the earlier prompts again, one by one, to an agent that runs no tools meanwhile.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { acpAgent } from '../../../../src/agents/acp/adapter.ts';
import { systemClock } from '../../../../src/host/clock.ts';
import { conversationOf, startModel } from '../../../../src/testing/index.ts';
import { ask, TestSandboxes } from '../../../contracts/agent-sandbox.ts';
import { allEvents, ended, WHICH_CODEWORDS } from '../../../e2e/support/conversations.ts';
import { bash, claudeAcp, codexAcp, execCommand, smallAgent, whyNotInstalled } from '../../support/acp-agents.ts';
import { AcpHome, type MakeSettings } from '../../support/acp-home.ts';
import { FIRST, SECOND } from '../../support/agent-home.ts';

const REPLAY = { restore: { rebuild: true, rung: 'replay' } } as const;
const noClaude = whyNotInstalled('@agentclientprotocol/claude-agent-acp');
const NO_TOOLS = { noTools: { version: '1.0.0', mode: 'quiet' } };

type Shell = (command: string) => string;
const AGENTS: readonly (readonly [name: string, settings: MakeSettings, shell: Shell, why: string | null])[] = [
  ['an agent without loadSession', (model, root) => smallAgent(model, root, ['without-load'], NO_TOOLS), bash, null],
  ['claude-agent-acp', claudeAcp, bash, noClaude],
  ['codex-acp', codexAcp, execCommand, whyNotInstalled('@agentclientprotocol/codex-acp')],
];

describe.each(AGENTS)('%s', (_, settings, shell, why) => {
  test('in a replay every earlier prompt arrives in order and no tool runs; after it tools run again', async (context) => {
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings });
    const tl = await home.open();
    const cwd = home.directory('work');
    const effects = () => readFileSync(join(cwd, 'effects.log'), 'utf8');
    const chat = tl.conversation('chat', { cwd });
    // The model calls the tool only if it is offered.
    const tool = shell('echo line >> effects.log').replace('tool!', 'tool');
    for (const prompt of [FIRST, tool, SECOND]) await chat.ask(prompt);
    expect(effects()).toBe('line\n');
    const before = home.model.requests.length;
    const { receipt, reply } = await chat.ask(WHICH_CODEWORDS, REPLAY);
    expect(receipt).toMatchObject({ rung: 'replay', carried: 3, delivered: 3, modelCalls: 3, toolsRan: [] });
    expect(reply).toBe('I have seen these codewords: amber, birch.');
    expect(effects()).toBe('line\n');
    const prompts = home.model.requests
      .slice(before)
      .filter(({ side }) => !side)
      .map((request) => conversationOf(request).findLast(({ role }) => role === 'user')?.text);
    expect(prompts.filter((text, i) => text !== prompts[i - 1])).toEqual([FIRST, tool, SECOND, WHICH_CODEWORDS]);
    // The answers of the replay are no turns.
    expect(await tl.engine.turns('chat')).toHaveLength(4);
    const steps = (await allEvents(tl.engine, 'chat')).filter(({ kind }) => kind === 'restore.progress');
    expect(steps.map(({ payload }) => payload)).toEqual(
      [0, 1, 2, 3].map((done) => ({ rung: 'replay', done, total: 3 })),
    );
    await chat.ask(tool);
    expect(effects()).toBe('line\nline\n');
  });
});

describe('without tools', () => {
  test('an agent without a proved profile is replayed only with allowTools, and the receipt lists the tools that ran', async () => {
    await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['without-load']) });
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    await chat.ask(FIRST);
    await chat.ask(bash('echo line >> effects.log'));
    const { turn } = await chat.send(WHICH_CODEWORDS, REPLAY).accepted;
    const { failure } = await ended(tl.engine, turn);
    expect(failure).toMatchObject({
      code: 'restore_failed',
      message: expect.stringMatching(/no proved no-tools profile/),
      hint: expect.stringMatching(/Leave out the rung/),
    });
    const allowed = await chat.ask(WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'replay', allowTools: true } });
    expect(allowed.receipt).toMatchObject({ rung: 'replay', toolsRan: [expect.stringContaining('echo line')] });
    expect(readFileSync(join(cwd, 'effects.log'), 'utf8')).toBe('line\nline\n');
  });

  test('an agent that leaves its mode without tools is ended before it runs a tool', async () => {
    const behaviour = JSON.stringify({ leavesMode: true });
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['without-load', behaviour], NO_TOOLS),
    });
    const tl = await home.open();
    const cwd = home.directory('work');
    const chat = tl.conversation('chat', { cwd });
    await chat.ask(bash('echo line >> effects.log'));
    const { turn } = await chat.send(WHICH_CODEWORDS, REPLAY).accepted;
    const { failure } = await ended(tl.engine, turn);
    expect(failure).toMatchObject({ code: 'restore_failed', message: expect.stringMatching(/it left the mode/) });
    expect(readFileSync(join(cwd, 'effects.log'), 'utf8')).toBe('line\n');
  });

  test('a profile is valid only for the version on which it was proved', async () => {
    const behaviour = JSON.stringify({ version: '1.0.1' });
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['without-load', behaviour], NO_TOOLS),
    });
    const [agent] = await (await home.open()).engine.agents();
    expect(agent?.traits).toMatchObject({ version: 'without-load 1.0.1', noTools: false });
  });
});

test('Claude without tools runs no tool, no hook and no MCP server of a project', async (context) => {
  if (noClaude !== null) return context.skip(noClaude);
  const model = await startModel();
  const sandboxes = new TestSandboxes();
  try {
    const settings = claudeAcp(model, sandboxes.root);
    const sandbox = await sandboxes.sandbox();
    const trace = join(sandboxes.root, 'trace.log');
    const hook = [{ hooks: [{ type: 'command', command: `echo hook >> ${trace}` }] }];
    const hooks = { SessionStart: hook, UserPromptSubmit: hook, PreToolUse: hook, Stop: hook };
    const permissions = { allow: ['Bash', 'Write', 'Edit', 'Read', 'mcp__spy'] };
    writeFileSync(join(settings.env.HOME ?? '', '.claude', 'settings.json'), JSON.stringify({ permissions, hooks }));
    mkdirSync(join(sandbox.work, '.claude'));
    writeFileSync(
      join(sandbox.work, '.claude', 'settings.json'),
      JSON.stringify({ permissions, hooks, enableAllProjectMcpServers: true }),
    );
    const spy = { command: '/bin/sh', args: ['-c', `echo server >> ${trace}`] };
    writeFileSync(join(sandbox.work, '.mcp.json'), JSON.stringify({ mcpServers: { spy } }));
    const agent = acpAgent({
      name: 'claude',
      ...settings,
      installed: sandboxes.root,
      memory: join(sandboxes.root, 'learnt'),
      clock: systemClock,
    });
    expect((await agent.traits(sandbox)).noTools).toBe(true);
    const session = await sandboxes.open(agent, sandbox, { kind: 'new', id: null }, true);
    for (const prompt of [
      bash(`echo tool >> ${trace}`),
      `model: tool! Write ${JSON.stringify({ file_path: trace, content: 'tool' })}`,
      `model: tool! Task ${JSON.stringify({ description: 'x', prompt: bash(`echo task >> ${trace}`), subagent_type: 'general-purpose' })}`,
      'model: tool! mcp__spy__run {}',
    ]) {
      await ask(session, prompt);
    }
    expect(existsSync(trace) ? readFileSync(trace, 'utf8') : '').toBe('');
    expect(model.requests.filter(({ side }) => !side).every(({ tools }) => tools.length === 0)).toBe(true);
    await session.close();
  } finally {
    await sandboxes.dispose();
    await model.close();
  }
});
