// An agent that answers `session/load` before it sends the history.
import { runAgent } from './agent.ts';

runAgent({ name: 'late', load: 'late' });
