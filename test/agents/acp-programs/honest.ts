// An agent that loads what it should. Its name and more may be given.
import { runAgent } from './agent.ts';

runAgent({ name: 'honest', load: 'honest', ...JSON.parse(process.argv[2] ?? '{}') });
