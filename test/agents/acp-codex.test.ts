import { test } from 'vitest';
import { codexAcp, missing } from './acp-agents.ts';
import { acpContract, execCommand } from './acp-contract.ts';

const why = missing('@agentclientprotocol/codex-acp');
if (why === null) acpContract('codex', codexAcp, execCommand);
else test('the agent contract: acp, codex', (context) => context.skip(why));
