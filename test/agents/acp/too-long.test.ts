// A prompt that is larger than the model's window, with real agents.
import { expect, test } from 'vitest';
import { ended } from '../../e2e/support/conversations.ts';
import { codexAcp, quickClaudeAcp, whyNotInstalled } from '../support/acp-agents.ts';
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
