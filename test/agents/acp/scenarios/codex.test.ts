import { test } from 'vitest';
import { codexAcp, missing } from '../../support/acp-agents.ts';
import { execCommand } from '../contract/contract.ts';
import { acpScenarios } from './scenarios.ts';

const why = missing('@agentclientprotocol/codex-acp');
if (why !== null) test('codex keeps its context', (context) => context.skip(why));
else {
  acpScenarios({
    name: 'codex-acp',
    settings: codexAcp,
    storage: '.codex/sessions',
    again: 'load',
    run: execCommand,
  });
}
