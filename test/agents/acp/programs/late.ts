// An agent that answers `session/load` first and repeats the history afterwards.
import { runAgent } from './agent.ts';

runAgent({ name: 'late', load: 'late' });
