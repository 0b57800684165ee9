import { test } from 'vitest';
import { claudeAcp, missing } from '../../support/acp-agents.ts';
import { acpContract, bash } from './contract.ts';

// Claude takes seconds to start, and the contract starts it thirty times; its scenarios are tried every time.
const long = process.env.THROUGHLINE_LONG === '1' ? null : 'takes long: npm run test:long';
const why = missing('@agentclientprotocol/claude-agent-acp') ?? long;
if (why === null) acpContract('claude', claudeAcp, bash);
else test('the agent contract: acp, claude', (context) => context.skip(why));
