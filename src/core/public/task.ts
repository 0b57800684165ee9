import { type PlanNeed, type PlanState, planStateOf } from '../tasks/plan-state.ts';
import type {
  ShownProgress,
  ShownTask,
  ShownTaskTurn,
  Task,
  TaskEvent,
  TaskEventKind,
  TaskEventPayloads,
  TaskTurn,
} from '../tasks/task.ts';
import { type GateResult, lastLineOf } from '../tasks/task-gate.ts';
import type { Stranded } from '../turn/standing.ts';
import type { Usage } from '../turn/usage.ts';
import { toPublicFailure } from './turn.ts';

/**
 * A task as all interfaces show it.
 *
 * @example
 * const [task] = await tl.tasks.run({ goal: 'Write a parser.', gate: 'npm test' });
 * console.log(task?.state, task?.progress.turns, task?.progress.decision?.reason);
 */
export interface PublicTask extends ShownTask {
  /** The same for all tasks that were added together: the caller's request id, else an id of ours. */
  readonly planId: string;
  readonly progress: PublicTaskProgress;
  /** Why no process works on it, and what to do; null: a process works on it or soon will, or it waits for something else. */
  readonly stranded: Stranded | null;
}

/** How far a task is. */
export interface PublicTaskProgress extends ShownProgress {
  /** Null: not started. */
  readonly conversationId: string | null;
  /** The last result of its gate; null: none yet. `lastLine`: of the output of its command; empty: no output, or an agent judged. */
  readonly lastGate: (Pick<GateResult, 'verdict' | 'summary'> & { readonly lastLine: string }) | null;
}

/**
 * Tasks that were added together, and whether a person is needed.
 *
 * @example
 * const { tasks } = await tl.tasks.add([{ name: 'parser', goal: 'Write a parser.' }, { goal: 'Describe it.', after: 'parser' }]);
 * const plan = await tl.tasks.plan(tasks[0]?.planId ?? '', { waitMs: 60_000 });
 * for (const { message, hint } of plan.needs) console.log(message, hint);
 */
export interface PublicPlan {
  /** The `planId` of its tasks. */
  readonly id: string;
  readonly state: PlanState;
  /** What a person has to do, in the order of the plan; also while other tasks still run. */
  readonly needs: readonly PlanNeed[];
  readonly tasks: readonly PublicPlanTask[];
}

/**
 * A task of a plan, in short.
 *
 * @example
 * const { tasks } = await tl.tasks.plan('nightly');
 * const failed = tasks.filter(({ state }) => state === 'failed').map(({ decision }) => decision?.reason);
 */
export interface PublicPlanTask {
  readonly id: string;
  readonly name: string | null;
  readonly state: ShownTask['state'];
  /** The last one; null: none yet. */
  readonly decision: ShownProgress['decision'];
}

/**
 * An ended turn of a task.
 *
 * @example
 * const { turns } = await tl.tasks.report('parser');
 * for (const { iteration, outcome, rung } of turns) console.log(iteration, outcome, rung);
 */
export interface PublicTaskTurn extends ShownTaskTurn {
  /** Null: the submission was refused. */
  readonly turnId: string | null;
  readonly conversationId: string;
}

/** The payload of every kind of public event of a task. */
export interface PublicTaskEventPayloads extends Omit<TaskEventPayloads, 'task.opened' | 'task.turned'> {
  'task.opened': { readonly conversationId: string };
  'task.turned': PublicTaskTurn;
  /** A newer version has stored a kind of event that this one does not know. It keeps its number. `kind`: that kind. */
  'event.unknown': { readonly kind: string };
}

/**
 * One event of a task. `seq` counts all events of an owner's tasks from 1 without gaps.
 *
 * @example
 * for await (const event of tl.tasks.follow({ after: await tl.tasks.lastSeq() })) {
 *   if (event.kind === 'task.decided') console.log(event.taskId, event.payload.decision, event.payload.reason);
 * }
 */
export type PublicTaskEvent = {
  [K in keyof PublicTaskEventPayloads]: {
    readonly seq: number;
    readonly taskId: string;
    readonly kind: K;
    readonly at: number;
    readonly payload: PublicTaskEventPayloads[K];
  };
}[keyof PublicTaskEventPayloads];

/** What a task has spent on one day (UTC). */
export interface PublicTaskUsageRow {
  readonly day: string;
  readonly taskId: string;
  readonly name: string | null;
  readonly milestone: string | null;
  readonly turns: number;
  readonly usage: Usage;
}

/** Leaves out what only the next runner needs: the turn to retry, the next prompt, and whether a session was adopted. */
export function toPublicTask(stored: Task, stranded: Stranded | null = null): PublicTask {
  const { id, owner, plan, name, goal, gate, milestone, agent, sessions, session, newSession } = stored;
  const { maxIterations, budget, after, retryInterrupted, cwd, sandbox, permissions, state, cancelRequested } = stored;
  const { createdAt, startedAt, endedAt } = stored;
  const { conversation, round, iteration, tries, turns, spent, lockWaits, denied = 0, decision } = stored.progress;
  return {
    ...{ id, owner, planId: plan, name, goal, gate, milestone, agent, sessions, session, newSession },
    ...{ maxIterations, budget, after, retryInterrupted, cwd, sandbox, permissions, state, cancelRequested },
    progress: {
      ...{ conversationId: conversation, round, iteration, tries, turns, spent, lockWaits, denied, decision },
      lastGate: lastGateOf(stored),
    },
    ...{ stranded, createdAt, startedAt, endedAt },
  };
}

/** `tasks`: all of the plan, in its order. */
export function toPublicPlan(id: string, tasks: readonly PublicTask[]): PublicPlan {
  const planned = tasks.map((task) => ({ ...task, decision: task.progress.decision }));
  const short = planned.map(({ id: task, name, state, decision }) => ({ id: task, name, state, decision }));
  return { id, ...planStateOf(planned), tasks: short };
}

/** The feedback for the next prompt has the last result of the gate, also when there is no next prompt. */
function lastGateOf({ progress: { feedback } }: Task): PublicTaskProgress['lastGate'] {
  const gate = feedback?.gate ?? null;
  return gate && { verdict: gate.verdict, summary: gate.summary, lastLine: lastLineOf(gate) };
}

function toPublicTaskTurn({ turn, conversation, ...stored }: TaskTurn): PublicTaskTurn {
  const { purpose, round, iteration, agent, outcome, failure, sessionId, rung, usage, endedAt } = stored;
  const { lockWaits, denied = [] } = stored; // turns of older versions have no `denied`
  return {
    ...{ purpose, round, iteration, turnId: turn, conversationId: conversation, agent, outcome },
    ...{ failure: toPublicFailure(failure, turn), sessionId, rung, usage, lockWaits, denied, endedAt },
  };
}

/** Every stored kind has a public form, or this does not compile. */
const PAYLOADS: { readonly [K in TaskEventKind]: (stored: TaskEventPayloads[K]) => PublicTaskEventPayloads[K] } = {
  'task.added': unchanged,
  'task.queued': unchanged,
  'task.started': unchanged,
  'task.opened': ({ conversation }) => ({ conversationId: conversation }),
  'task.turned': toPublicTaskTurn,
  'task.gated': unchanged,
  'task.decided': unchanged,
  'task.cancel_requested': unchanged,
  'task.cancelled': unchanged,
  'task.retried': unchanged,
};

function unchanged<T>(payload: T): T {
  return payload;
}

export function toPublicTaskEvent({ seq, task, kind, at, payload }: TaskEvent): PublicTaskEvent {
  const common = { seq, taskId: task, at };
  // As for the events of conversations: a newer version may write to the same store.
  if (!Object.hasOwn(PAYLOADS, kind)) return { ...common, kind: 'event.unknown', payload: { kind } };
  const toPublic = PAYLOADS[kind] as (stored: unknown) => unknown;
  return { ...common, kind, payload: toPublic(payload) } as PublicTaskEvent;
}
