import { test } from 'vitest';
import { codexAcp, missing } from '../../support/acp-agents.ts';
import { acpContract, execCommand } from './contract.ts';

const why = missing('@agentclientprotocol/codex-acp');
if (why === null) acpContract('codex', codexAcp, execCommand);
else test('the agent contract: acp, codex', (context) => context.skip(why));
