import { availableParallelism } from 'node:os';
import { AtMost } from '../flow/at-most.ts';
import { LONGEST_TIMER_MS } from './parts.ts';

/*
 * Starting an agent uses a processor for a while: a runtime, its program, a handshake. If all conversations started their agents at the same
 * moment, all would be slow, and the server could not answer. So only a few agents start at a time.
 */

/**
 * For opening sessions. An agent that has been starting for more than a second is not waiting for a processor, and no longer counts. All
 * engines of a process share this, because they share the processors.
 */
export const starts = new AtMost({ most: Math.max(4, 2 * availableParallelism()), longestMs: 1_000 });

/** For agents that a request starts while its caller waits. Each counts until it has ended, however long that takes. */
export const askedStarts = new AtMost({ most: 4, longestMs: LONGEST_TIMER_MS });
