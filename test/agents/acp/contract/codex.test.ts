import { test } from 'vitest';
import { codexAcp, execCommand, whyNotInstalled } from '../../support/acp-agents.ts';
import { acpContract } from './contract.ts';

const why = whyNotInstalled('@agentclientprotocol/codex-acp');
if (why === null) acpContract('codex', codexAcp, execCommand);
else test('the agent contract: acp, codex', (context) => context.skip(why));
