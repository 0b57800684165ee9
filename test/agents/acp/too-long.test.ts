// The window of the model: as agents report it, and prompts that are larger, with real agents.
import { expect, test } from 'vitest';
import { ended } from '../../e2e/support/conversations.ts';
import { codexAcp, quickClaudeAcp, smallAgent, whyNotInstalled } from '../support/acp-agents.ts';
import { AcpHome, type MakeSettings } from '../support/acp-home.ts';
import { codeword, FIRST } from '../support/agent-home.ts';
import { claudeEnvironment, packageFolder, userHome } from '../support/claude.ts';

const claude: MakeSettings = (model, root) => ({
  adapter: 'claude-sdk',
  package: packageFolder,
  env: claudeEnvironment(model, userHome(root)),
});

test.for([
  ['claude-sdk', claude, '@agentclientprotocol/claude-agent-acp'],
  ['claude-agent-acp', quickClaudeAcp, '@agentclientprotocol/claude-agent-acp'],
  ['codex-acp', codexAcp, '@agentclientprotocol/codex-acp'],
] as const)(
  '%s: the turn of a prompt that is too long is failed, and the next turn has it shortened',
  { timeout: 180_000 },
  async (row, context) => {
    const [, settings, name] = row;
    const why = whyNotInstalled(name);
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings }, { window: 100_000 });
    const tl = await home.open();
    const chat = tl.conversation('chat');
    await chat.ask(FIRST);
    const { turn } = await chat.send(`${codeword('birch')}${' lorem ipsum'.repeat(100_000)}`).accepted;
    expect(await ended(tl.engine, turn)).toMatchObject({ state: 'failed', failure: { code: 'too_long' } });
    const { receipt } = await chat.ask(codeword('cedar'));
    expect(receipt).toMatchObject({ carried: 2, dropped: 0, shortened: 1 });
    home.expectCodewords('amber', 'birch', 'cedar');
  },
);

test('receipts say which window was used: assumed, until the agent has reported one', async () => {
  await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['sends-updates']) });
  const chat = (await home.open()).conversation('chat');
  const updates = [
    { sessionUpdate: 'usage_update', used: 1, size: 32_000 },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'Done.' } },
  ];
  const windows = [];
  for (let i = 0; i < 2; i += 1) windows.push((await chat.ask(JSON.stringify({ updates }))).receipt.window);
  expect(windows).toEqual([
    { tokens: 128_000, from: 'assumed' },
    { tokens: 32_000, from: 'reported' },
  ]);
});
