import type { PublicSession } from '../public/session.ts';
import type { PublicTask, PublicTaskEvent, PublicTaskTurn } from '../public/task.ts';
import { addUsage, NO_USAGE, type Usage } from '../turn/usage.ts';
import type { Decision, TaskState } from './task.ts';
import type { GateResult } from './task-gate.ts';

/**
 * Everything about a task, turn by turn.
 *
 * @example
 * const { task, turns, gates } = await tl.tasks.report('parser');
 * console.log(task.state, turns.length, gates.at(-1)?.result.summary);
 */
export interface TaskReport {
  readonly task: PublicTask;
  readonly turns: readonly PublicTaskTurn[];
  readonly gates: readonly {
    readonly round: number;
    readonly iteration: number;
    readonly result: GateResult;
    readonly at: number;
  }[];
  readonly decisions: readonly (Decision & {
    readonly round: number;
    readonly iteration: number;
    readonly state: TaskState;
    readonly at: number;
  })[];
  /** The agent's sessions of its turns, most recently used first. */
  readonly sessions: readonly ReportedSession[];
}

export type ReportedSession = Pick<PublicSession, 'id' | 'agent' | 'origin' | 'state' | 'watermark'> & {
  /** How many turns of this task ran in it. A milestone's session also has turns of other tasks. */
  readonly turns: number;
};

/** The results of several tasks together. */
export interface TaskTotals {
  readonly tasks: number;
  readonly states: Readonly<Partial<Record<TaskState, number>>>;
  readonly turns: number;
  readonly spent: Usage;
  readonly lockWaits: { readonly count: number; readonly ms: number };
  /** `done`: all are done. `unfinished`: some wait or run, and none needs a person. `attention`: at least one asks, failed or was cancelled. */
  readonly verdict: 'done' | 'unfinished' | 'attention';
}

export function totalsOf(tasks: readonly PublicTask[]): TaskTotals {
  const states: Partial<Record<TaskState, number>> = {};
  let [turns, spent, count, ms] = [0, NO_USAGE, 0, 0];
  for (const { state, progress } of tasks) {
    states[state] = (states[state] ?? 0) + 1;
    turns += progress.turns;
    spent = addUsage(spent, progress.spent);
    count += progress.lockWaits.count;
    ms += progress.lockWaits.ms;
  }
  const attention = states.asking || states.failed || states.cancelled;
  const verdict = attention ? 'attention' : states.done === tasks.length ? 'done' : 'unfinished';
  return { tasks: tasks.length, states, turns, spent, lockWaits: { count, ms }, verdict };
}

/** Makes a report from the events of the task. */
export function reportOf(
  task: PublicTask,
  events: readonly PublicTaskEvent[],
  sessions: readonly Omit<ReportedSession, 'turns'>[],
): TaskReport {
  const turns = events.flatMap((event) => (event.kind === 'task.turned' ? [event.payload] : []));
  const turnsIn = (id: string) => turns.filter(({ sessionId }) => sessionId === id).length;
  return {
    task,
    turns,
    gates: events.flatMap((event) => (event.kind === 'task.gated' ? [{ ...event.payload, at: event.at }] : [])),
    decisions: events.flatMap((event) => (event.kind === 'task.decided' ? [{ ...event.payload, at: event.at }] : [])),
    sessions: sessions
      .filter(({ id }) => turnsIn(id) > 0)
      .map(({ id, agent, origin, state, watermark }) => ({ id, agent, origin, state, watermark, turns: turnsIn(id) })),
  };
}
