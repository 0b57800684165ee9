import { bash, claudeAcp, codexAcp, execCommand, smallAgent, whyNotInstalled } from '../support/acp-agents.ts';
import { type AgentToTest, testKillDuringTool } from '../support/killed.ts';

const skipUnlessInstalled =
  (name: Parameters<typeof whyNotInstalled>[0]): AgentToTest['skipIfMissing'] =>
  (context) => {
    const why = whyNotInstalled(name);
    if (why !== null) context.skip(why);
  };

testKillDuringTool({
  name: 'claude-agent-acp',
  settings: claudeAcp,
  run: bash,
  skipIfMissing: skipUnlessInstalled('@agentclientprotocol/claude-agent-acp'),
});
testKillDuringTool({
  name: 'codex-acp',
  settings: codexAcp,
  run: execCommand,
  skipIfMissing: skipUnlessInstalled('@agentclientprotocol/codex-acp'),
});
testKillDuringTool({
  name: 'an agent without loadSession',
  settings: (model, root) => smallAgent(model, root, ['without-load']),
  run: bash,
  skipIfMissing: () => {},
});
testKillDuringTool({
  name: 'an agent that loads sessions without their history',
  settings: (model, root) => smallAgent(model, root, ['incomplete', 'empty'], { quietMs: 200 }),
  run: bash,
  skipIfMissing: () => {},
});
