import { ownAgent } from '../../support/acp-agents.ts';
import { acpContract, bash } from './contract.ts';

const NO_TOOLS = { noTools: { version: '1.0.0', mode: 'quiet' } };

acpContract('loads and repeats', (model, root) => ownAgent(model, root, ['honest'], NO_TOOLS), bash);
acpContract('cannot load', (model, root) => ownAgent(model, root, ['without-load']), bash);
