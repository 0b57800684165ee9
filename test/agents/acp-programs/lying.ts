// An agent that says yes to `session/load`, and has forgotten: everything, all but the beginning, or whose it was.
import { runAgent } from './agent.ts';

runAgent({ name: 'lying', load: process.argv[2] as 'empty' | 'wrong' | 'truncated' });
