import { claudeAcp, codexAcp, missing, ownAgent } from './acp-agents.ts';
import { bash, execCommand } from './acp-contract.ts';
import { type KilledAgent, killedInTheMiddle } from './killed.ts';

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
  needs(context) {
    // Each command starts it anew, which takes seconds; its scenarios kill a process in the middle of a turn every time.
    if (process.env.THROUGHLINE_LONG !== '1') context.skip('takes long: npm run test:long');
    installed('@agentclientprotocol/claude-agent-acp')(context);
  },
});
killedInTheMiddle({
  name: 'codex-acp',
  settings: codexAcp,
  run: execCommand,
  needs: installed('@zed-industries/codex-acp'),
});
killedInTheMiddle({
  name: 'an agent without loadSession',
  settings: (model, root) => ownAgent(model, root, ['without-load']),
  run: bash,
  needs: () => {},
});
