import { availableParallelism } from 'node:os';
import { AtMost } from '../flow/at-most.ts';
import { LONGEST_TIMER_MS } from './parts.ts';

/*
 * Starting an agent takes a processor for a while: a runtime, its program, a handshake. When many conversations want one at the same
 * moment, all of them start at once, none gets ready, and the server itself gets no time to answer. So only some are started at a
 * time.
 */

/**
 * For opening sessions. An agent that takes longer than a second waits for something else than a processor. The processors belong to
 * the machine, so all engines of a process share this.
 */
export const starts = new AtMost({ most: Math.max(4, 2 * availableParallelism()), longestMs: 1_000 });

/** For agents that a request starts while its caller waits: however long they take, there are no more. */
export const askedStarts = new AtMost({ most: 4, longestMs: LONGEST_TIMER_MS });
