// An agent that says yes to `session/load` and opens the session without its history: empty, cut, or somebody else's.
import { runAgent } from './agent.ts';

runAgent({ name: 'incomplete', load: process.argv[2] as 'empty' | 'wrong' | 'truncated' | 'silent' });
