import { bash, smallAgent } from '../../support/acp-agents.ts';
import { acpScenarios } from './scenarios.ts';

acpScenarios({
  name: 'an agent without loadSession',
  settings: (model, root) => smallAgent(model, root, ['without-load']),
  storage: '.acp-agent',
  reopens: 'none',
  run: bash,
});

acpScenarios({
  name: 'an agent that loads sessions without their history',
  settings: (model, root) => smallAgent(model, root, ['incomplete', 'empty'], { quietMs: 200 }),
  storage: '.acp-agent',
  reopens: 'incomplete',
  run: bash,
});
