import { bash, smallAgent } from '../../support/acp-agents.ts';
import { acpContract } from './contract.ts';

const NO_TOOLS = { noTools: { version: '1.0.0', mode: 'quiet' } };

acpContract(
  'loads sessions with their history',
  (model, root) => smallAgent(model, root, ['complete'], NO_TOOLS),
  bash,
);
acpContract('cannot load sessions', (model, root) => smallAgent(model, root, ['without-load']), bash);
