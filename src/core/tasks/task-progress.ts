import { addUsage, NO_USAGE } from '../usage.ts';
import type { Decision, TaskProgress, TaskSpec, TaskTurn, TurnPurpose } from './task.ts';
import type { GateResult } from './task-gate.ts';

/** Where a task stands before its first turn. */
export function firstProgress({ session }: Pick<TaskSpec, 'session'>): TaskProgress {
  return {
    conversation: null,
    round: 1,
    iteration: 1,
    tries: 0,
    retryOf: null,
    feedback: null,
    adopted: session === null,
    turns: 0,
    spent: NO_USAGE,
    lockWaits: { count: 0, ms: 0 },
    decision: null,
  };
}

/**
 * The id that a turn of a task is submitted under. It follows from where the task stands: whoever goes on after a crash asks
 * for the same turn, and gets it.
 */
export function requestIdOf(task: string, progress: TaskProgress, purpose: TurnPurpose, asked = 1): string {
  const { round, iteration, tries } = progress;
  const step = `task/${task}/${round}.${iteration}${tries > 0 ? `.${tries}` : ''}`;
  return purpose === 'work' ? step : `${step}/gate.${asked}`;
}

/** What a turn has cost and waited for is counted once, when the task is told of its end. */
export function withTurns(progress: TaskProgress, ended: readonly TaskTurn[]): TaskProgress {
  let { spent, adopted } = progress;
  let { count, ms } = progress.lockWaits;
  for (const { usage, lockWaits, purpose, sessionId } of ended) {
    spent = addUsage(spent, usage);
    count += lockWaits.count;
    ms += lockWaits.ms;
    adopted ||= purpose === 'work' && sessionId !== null;
  }
  return { ...progress, turns: progress.turns + ended.length, spent, adopted, lockWaits: { count, ms } };
}

/** Where a task stands after a decision about a turn. */
export function withDecision(
  progress: TaskProgress,
  decision: Decision,
  turn: string | null,
  gate: GateResult | null,
): TaskProgress {
  const decided = { ...progress, decision };
  if (decision.decision !== 'retry') return gate === null ? decided : { ...decided, feedback: { gate, person: null } };
  if (decision.code === 'turn_interrupted') return { ...decided, tries: progress.tries + 1, retryOf: turn };
  return { ...decided, iteration: progress.iteration + 1, tries: 0, retryOf: null, feedback: { gate, person: null } };
}

/** A person has it tried again: a new round, which knows what the gate last said. */
export function retriedProgress(progress: TaskProgress, say: string | null): TaskProgress {
  const gate = progress.feedback?.gate ?? null;
  return {
    ...progress,
    round: progress.round + 1,
    iteration: 1,
    tries: 0,
    retryOf: null,
    feedback: progress.turns === 0 && say === null ? null : { gate, person: { say } },
  };
}
