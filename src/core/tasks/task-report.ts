import type { PublicTask, PublicTaskEvent, PublicTaskTurn } from '../public/task.ts';
import type { Session } from '../restore/session.ts';
import type { Decision, TaskState } from './task.ts';
import type { GateResult } from './task-gate.ts';

/** Everything about a task, turn by turn. */
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

export type ReportedSession = Pick<Session, 'id' | 'agent' | 'origin' | 'state' | 'watermark'> & {
  /** How many turns of this task ran in it. A milestone's session also has turns of other tasks. */
  readonly turns: number;
};

/** Makes a report from the events of the task. */
export function reportOf(
  task: PublicTask,
  events: readonly PublicTaskEvent[],
  sessions: readonly Session[],
): TaskReport {
  const turns = events.flatMap((event) => (event.kind === 'task.turned' ? [event.payload] : []));
  const of = (id: string) => turns.filter(({ sessionId }) => sessionId === id).length;
  return {
    task,
    turns,
    gates: events.flatMap((event) => (event.kind === 'task.gated' ? [{ ...event.payload, at: event.at }] : [])),
    decisions: events.flatMap((event) => (event.kind === 'task.decided' ? [{ ...event.payload, at: event.at }] : [])),
    sessions: sessions
      .filter(({ id }) => of(id) > 0)
      .map(({ id, agent, origin, state, watermark }) => ({ id, agent, origin, state, watermark, turns: of(id) })),
  };
}
