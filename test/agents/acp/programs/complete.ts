// An agent that loads sessions with their whole history. Its argument, a `Behaviour` as JSON, can change that.
import { runAgent } from './agent.ts';

runAgent({ name: 'complete', load: 'complete', ...JSON.parse(process.argv[2] ?? '{}') });
