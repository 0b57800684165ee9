import { ownAgent } from '../../support/acp-agents.ts';
import { bash } from '../contract/contract.ts';
import { acpScenarios } from './scenarios.ts';

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
