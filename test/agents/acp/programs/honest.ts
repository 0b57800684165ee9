// An agent that loads sessions with their history. Arguments can change its behaviour.
import { runAgent } from './agent.ts';

runAgent({ name: 'honest', load: 'honest', ...JSON.parse(process.argv[2] ?? '{}') });
