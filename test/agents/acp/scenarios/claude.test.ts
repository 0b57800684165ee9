import { test } from 'vitest';
import { bash, quickClaudeAcp, whyNotInstalled } from '../../support/acp-agents.ts';
import { acpScenarios } from './scenarios.ts';

const why = whyNotInstalled('@agentclientprotocol/claude-agent-acp');
if (why !== null) test('claude-agent-acp keeps its context', (context) => context.skip(why));
else {
  acpScenarios({
    name: 'claude-agent-acp',
    settings: quickClaudeAcp,
    storage: '.claude/projects',
    reopens: 'load',
    run: bash,
  });
}
