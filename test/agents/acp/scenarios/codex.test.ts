import { test } from 'vitest';
import { codexAcp, execCommand, whyNotInstalled } from '../../support/acp-agents.ts';
import { acpScenarios } from './scenarios.ts';

const why = whyNotInstalled('@agentclientprotocol/codex-acp');
if (why !== null) test('codex-acp keeps its context', (context) => context.skip(why));
else {
  acpScenarios({
    name: 'codex-acp',
    settings: codexAcp,
    storage: '.codex/sessions',
    reopens: 'load',
    run: execCommand,
  });
}
