import { test } from 'vitest';
import { bash, claudeAcp, whyNotInstalled } from '../../support/acp-agents.ts';
import { acpContract } from './contract.ts';

// Claude takes seconds to start, and the contract starts it thirty times. The scenarios of this agent run in every `npm run test:all`.
const long = process.env.THROUGHLINE_LONG === '1' ? null : 'takes long: npm run test:long';
const why = whyNotInstalled('@agentclientprotocol/claude-agent-acp') ?? long;
if (why === null) acpContract('claude', claudeAcp, bash);
else test('the agent contract: acp, claude', (context) => context.skip(why));
