import { claudeAcp, codexAcp, missing, ownAgent } from '../support/acp-agents.ts';
import { type KilledAgent, killedInTheMiddle } from '../support/killed.ts';
import { bash, execCommand } from './contract/contract.ts';

const installed =
  (name: Parameters<typeof missing>[0]): KilledAgent['needs'] =>
  (context) => {
    const why = missing(name);
    if (why !== null) context.skip(why);
  };

killedInTheMiddle({
  name: 'claude-agent-acp',
  settings: claudeAcp,
  run: bash,
  needs: installed('@agentclientprotocol/claude-agent-acp'),
});
killedInTheMiddle({
  name: 'codex-acp',
  settings: codexAcp,
  run: execCommand,
  needs: installed('@agentclientprotocol/codex-acp'),
});
killedInTheMiddle({
  name: 'an agent without loadSession',
  settings: (model, root) => ownAgent(model, root, ['without-load']),
  run: bash,
  needs: () => {},
});
killedInTheMiddle({
  name: 'an agent that loads sessions without their history',
  settings: (model, root) => ownAgent(model, root, ['incomplete', 'empty'], { quietMs: 200 }),
  run: bash,
  needs: () => {},
});
