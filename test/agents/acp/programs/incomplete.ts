// An agent that reports a session as loaded and does not have its history. The argument says what it has instead.
import { runAgent } from './agent.ts';

runAgent({ name: 'incomplete', load: process.argv[2] as 'empty' | 'wrong' | 'truncated' | 'hangs' });
