import type { Failure } from '../errors.ts';
import type { Budget } from '../limits/budget.ts';
import type {
  Decision,
  Gate,
  SessionMode,
  Task,
  TaskEvent,
  TaskEventKind,
  TaskEventPayloads,
  TaskState,
  TaskTurn,
  TurnPurpose,
} from '../tasks/task.ts';
import { type GateResult, lastLineOf } from '../tasks/task-gate.ts';
import type { Denial } from '../turn/permission.ts';
import type { Stranded } from '../turn/standing.ts';
import type { PermissionMode, TurnEnd } from '../turn/turn.ts';
import type { Usage } from '../turn/usage.ts';

/**
 * A task as all interfaces show it.
 *
 * @example
 * const [task] = await tl.tasks.run({ goal: 'Write a parser.', gate: 'npm test' });
 * console.log(task?.state, task?.progress.turns, task?.progress.decision?.reason);
 */
export interface PublicTask {
  readonly id: string;
  readonly owner: string;
  /** The same for all tasks that were added together: the caller's request id, else an id of ours. */
  readonly planId: string;
  /** The caller's name for it within its plan; null: none. */
  readonly name: string | null;
  readonly goal: string;
  /** Null: the task ends with its first turn. */
  readonly gate: Gate | null;
  /** Tasks of one milestone share a conversation, and run one after another; null: a conversation of its own. */
  readonly milestone: string | null;
  readonly agent: string;
  readonly sessions: SessionMode;
  /** The agent's id of a session to continue in; null: none. */
  readonly session: string | null;
  readonly maxIterations: number;
  readonly budget: Budget;
  /** Ids of tasks that must be done first. */
  readonly after: readonly string[];
  /** How often in a row an interrupted turn is retried without asking a person. */
  readonly retryInterrupted: number;
  /** A directory to work in; null: one of its own. */
  readonly cwd: string | null;
  /** The caller's name of a sandbox that it shares with others; null: one of its own. */
  readonly sandbox: string | null;
  readonly permissions: PermissionMode;
  readonly state: TaskState;
  readonly progress: PublicTaskProgress;
  readonly cancelRequested: boolean;
  /** Why no process works on it, and what to do; null: one does, or will, or it waits for something else. */
  readonly stranded: Stranded | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** How far a task is. */
export interface PublicTaskProgress {
  /** Null: not started. */
  readonly conversationId: string | null;
  /** Starts at 1; every retry by a person adds one. */
  readonly round: number;
  /** The next or running turn of this round, from 1. */
  readonly iteration: number;
  /** How often this turn was retried after an interruption. */
  readonly tries: number;
  /** Turns that have ended, of the agent and of the gate. */
  readonly turns: number;
  readonly spent: Usage;
  readonly lockWaits: { readonly count: number; readonly ms: number };
  /** How many questions of its agents were denied because nobody answered. */
  readonly denied: number;
  /** The last one; null: none yet. */
  readonly decision: Decision | null;
  /** The last result of its gate; null: none yet. `lastLine`: of what its command wrote; empty: it wrote nothing, or an agent judged. */
  readonly lastGate: (Pick<GateResult, 'verdict' | 'summary'> & { readonly lastLine: string }) | null;
}

/**
 * An ended turn of a task.
 *
 * @example
 * const { turns } = await tl.tasks.report('parser');
 * for (const { iteration, outcome, rung } of turns) console.log(iteration, outcome, rung);
 */
export interface PublicTaskTurn {
  readonly purpose: TurnPurpose;
  readonly round: number;
  readonly iteration: number;
  /** Null: the submission was refused. */
  readonly turnId: string | null;
  readonly conversationId: string;
  readonly agent: string;
  readonly outcome: TurnEnd;
  readonly failure: Failure | null;
  readonly sessionId: string | null;
  /** The rung that restored its session; null: it did not get that far. */
  readonly rung: string | null;
  readonly usage: Usage;
  readonly lockWaits: { readonly count: number; readonly ms: number };
  /** Questions of the agent that were denied because nobody answered: the first hundred. */
  readonly denied: readonly Denial[];
  readonly endedAt: number;
}

/** The payload of every kind of public event of a task. */
export interface PublicTaskEventPayloads extends Omit<TaskEventPayloads, 'task.opened' | 'task.turned'> {
  'task.opened': { readonly conversationId: string };
  'task.turned': PublicTaskTurn;
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
  [K in TaskEventKind]: {
    readonly seq: number;
    readonly taskId: string;
    readonly kind: K;
    readonly at: number;
    readonly payload: PublicTaskEventPayloads[K];
  };
}[TaskEventKind];

/** What a task has spent on one day (UTC). */
export interface PublicTaskUsageRow {
  readonly day: string;
  readonly taskId: string;
  readonly name: string | null;
  readonly milestone: string | null;
  readonly turns: number;
  readonly usage: Usage;
}

/** Without what only the next runner needs: the turn to retry, the next prompt, and whether a session was adopted. */
export function toPublicTask(stored: Task, stranded: Stranded | null = null): PublicTask {
  const { id, owner, plan, name, goal, gate, milestone, agent, sessions, session, maxIterations, budget } = stored;
  const { after, retryInterrupted, cwd, sandbox, permissions, state, cancelRequested } = stored;
  const { createdAt, startedAt, endedAt } = stored;
  const { conversation, round, iteration, tries, turns, spent, lockWaits, denied = 0, decision } = stored.progress;
  return {
    ...{ id, owner, planId: plan, name, goal, gate, milestone, agent, sessions, session, maxIterations, budget },
    ...{ after, retryInterrupted, cwd, sandbox, permissions, state, cancelRequested },
    progress: {
      ...{ conversationId: conversation, round, iteration, tries, turns, spent, lockWaits, denied, decision },
      lastGate: lastGateOf(stored),
    },
    ...{ stranded, createdAt, startedAt, endedAt },
  };
}

/** What the next prompt says of the gate is its last result, also when there is no next prompt. */
function lastGateOf({ progress: { feedback } }: Task): PublicTaskProgress['lastGate'] {
  const gate = feedback?.gate ?? null;
  return gate && { verdict: gate.verdict, summary: gate.summary, lastLine: lastLineOf(gate) };
}

export function toPublicTaskTurn({ turn, conversation, ...stored }: TaskTurn): PublicTaskTurn {
  const { purpose, round, iteration, agent, outcome, failure, sessionId, rung, usage, endedAt } = stored;
  const { lockWaits, denied = [] } = stored; // a turn that was stored before they were kept has none
  return {
    ...{ purpose, round, iteration, turnId: turn, conversationId: conversation, agent, outcome, failure },
    ...{ sessionId, rung, usage, lockWaits, denied, endedAt },
  };
}

export function toPublicTaskEvent(stored: TaskEvent): PublicTaskEvent {
  const { seq, task, kind, at } = stored;
  return { seq, taskId: task, kind, at, payload: publicPayload(stored) } as PublicTaskEvent;
}

function publicPayload(stored: TaskEvent): PublicTaskEvent['payload'] {
  switch (stored.kind) {
    case 'task.opened':
      return { conversationId: stored.payload.conversation };
    case 'task.turned':
      return toPublicTaskTurn(stored.payload);
    default:
      return stored.payload;
  }
}
