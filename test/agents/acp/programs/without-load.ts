// An agent that does not support `session/load`. In its mode `quiet` it offers its model no tools and runs none.
import { runAgent } from './agent.ts';

runAgent({ name: 'without-load', embeddedContext: true, ...JSON.parse(process.argv[2] ?? '{}') });
