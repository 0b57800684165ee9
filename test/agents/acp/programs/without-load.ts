// An agent that cannot open a session again. It has a mode in which it offers its model no tools, and runs none.
import { runAgent } from './agent.ts';

runAgent({ name: 'without-load', embeddedContext: true, ...JSON.parse(process.argv[2] ?? '{}') });
