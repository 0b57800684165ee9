import { addUsage, NO_USAGE } from '../turn/usage.ts';
import type { Decision, TaskProgress, TaskSpec, TaskTurn, TurnPurpose } from './task.ts';
import type { GateResult } from './task-gate.ts';

/** The progress of a task before its first turn. */
export function firstProgress({ session, newSession }: Pick<TaskSpec, 'session' | 'newSession'>): TaskProgress {
  return {
    conversation: null,
    round: 1,
    iteration: 1,
    tries: 0,
    retryOf: null,
    feedback: null,
    adopted: session === null && newSession === null,
    turns: 0,
    spent: NO_USAGE,
    lockWaits: { count: 0, ms: 0 },
    denied: 0,
    decision: null,
  };
}

/** The request id of a task's turn. It is made from the progress, so after a crash the next runner submits the same turn. */
export function requestIdOf(task: string, progress: TaskProgress, purpose: TurnPurpose, asked = 1): string {
  const { round, iteration, tries } = progress;
  const step = `task/${task}/${round}.${iteration}${tries > 0 ? `.${tries}` : ''}`;
  return purpose === 'work' ? step : `${step}/gate.${asked}`;
}

/** The id of the task to which a turn with this request id belongs; null: it is not a turn of a task. */
export function taskOfRequest(requestId: string | null): string | null {
  return requestId?.match(/^task\/([^/]+)\/\d/)?.[1] ?? null;
}

/** Adds cost and waits of ended turns. Each turn is counted once. */
export function withTurns(progress: TaskProgress, ended: readonly TaskTurn[]): TaskProgress {
  let { spent, adopted, denied = 0 } = progress; // progress of older versions has no `denied`
  let { count, ms } = progress.lockWaits;
  for (const { usage, lockWaits, denied: questions, purpose, sessionId } of ended) {
    spent = addUsage(spent, usage);
    count += lockWaits.count;
    ms += lockWaits.ms;
    denied += questions.length;
    adopted ||= purpose === 'work' && sessionId !== null;
  }
  return { ...progress, turns: progress.turns + ended.length, spent, adopted, denied, lockWaits: { count, ms } };
}

/** The progress after a decision about a turn. */
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

/** A person retries the task: a new round, which keeps the last result of the gate. */
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
