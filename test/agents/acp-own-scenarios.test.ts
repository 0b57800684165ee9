import { ownAgent } from './acp-agents.ts';
import { bash } from './acp-contract.ts';
import { acpScenarios } from './acp-scenarios.ts';

acpScenarios({
  name: 'an agent without loadSession',
  settings: (model, root) => ownAgent(model, root, ['without-load']),
  storage: '.acp-agent',
  again: 'none',
  run: bash,
});

acpScenarios({
  name: 'an agent that loads sessions without their history',
  settings: (model, root) => ownAgent(model, root, ['incomplete', 'empty'], { quietMs: 200 }),
  storage: '.acp-agent',
  again: 'incomplete',
  run: bash,
});
