import type { ProcessIdentity } from '../process.ts';
import { isThere, mayRun, runsAt, runsOnlyAt, type Stranded, type Takes } from '../turn/standing.ts';
import type { Task } from './task.ts';

/** The processes, other than this one, that could work on a queued task. */
export interface TaskRunnerFacts {
  /** The task belongs to the data home of this process. */
  readonly here: boolean;
  /** The name of its place: the path of its data home; null: none is known. */
  readonly home: string | null;
  readonly takers: readonly Takes[];
  /** The processes that hold tasks now. A process that works on one task may also have been asked to run this one. */
  readonly holders: readonly { readonly process: ProcessIdentity; readonly expired: boolean }[];
  readonly status: (process: ProcessIdentity) => 'alive' | 'dead' | 'unknown';
  /** The address of the store that the task is in. */
  readonly store: string;
}

/** Why no process works on a queued task; null: a process works on it, or may begin soon. */
export function whyTaskStranded({ place }: Task, facts: TaskRunnerFacts): Stranded | null {
  const { here, home, takers, holders, status, store } = facts;
  if (holders.some((holder) => mayRun(holder, status))) return null;
  if (takers.some((taker) => runsAt(place, taker.place) && isThere(taker, status))) return null;
  if (here) {
    return {
      reason: 'no_process',
      message: 'No process works on the task now.',
      hint: '"throughline task run", "throughline serve" or a program that opens this data home continues it.',
    };
  }
  return { reason: 'other_home', ...runsOnlyAt('The task', { home, place, store }) };
}
