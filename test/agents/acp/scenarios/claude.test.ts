import { test } from 'vitest';
import { missing, quickClaudeAcp } from '../../support/acp-agents.ts';
import { bash } from '../contract/contract.ts';
import { acpScenarios } from './scenarios.ts';

const why = missing('@agentclientprotocol/claude-agent-acp');
if (why !== null) test('claude-agent-acp keeps its context', (context) => context.skip(why));
else {
  acpScenarios({
    name: 'claude-agent-acp',
    settings: quickClaudeAcp,
    storage: '.claude/projects',
    again: 'load',
    run: bash,
  });
}
