import { type Failure, ThroughlineError } from '../errors.ts';
import type { Budget } from '../limits/budget.ts';
import type { Denial } from '../turn/permission.ts';
import type { PermissionMode, TurnEnd } from '../turn/turn.ts';
import type { Usage } from '../turn/usage.ts';
import type { GateResult } from './task-gate.ts';

/*
 * A task is a goal. An agent works on it, turn by turn, until its gate passes.
 *
 *   waiting (on the tasks it comes after) ──▶ queued ──▶ running ──▶ done | failed | cancelled
 *                                              ▲  ▲         │ │
 *                                              │  └─────────┘ │  its runner ended: another one continues it
 *                                              │              ▼
 *                                              └─────────── asking (a person; nothing happens until somebody answers)
 *
 * A person may also retry a task that has failed or was cancelled. A done task stays done. A task that comes after a failed one
 * keeps waiting, because the failed one may be retried.
 */
export const TASK_ENDS = ['done', 'failed', 'cancelled'] as const;
export type TaskEnd = (typeof TASK_ENDS)[number];
export const TASK_STATES = ['waiting', 'queued', 'running', 'asking', ...TASK_ENDS] as const;
/**
 * Where a task is. `asking`: it waits for a person.
 *
 * @example
 * import type { TaskState } from 'throughline';
 *
 * const states: TaskState[] = ['asking', 'failed'];
 * const waiting = await tl.tasks.list({ states });
 */
export type TaskState = (typeof TASK_STATES)[number];

export function taskHasEnded(state: TaskState): state is TaskEnd {
  return (TASK_ENDS as readonly TaskState[]).includes(state);
}

/** Throws `invalid` for an unknown state. */
export function checkTaskStates(states: readonly TaskState[]): void {
  const unknown = states.find((state) => !TASK_STATES.includes(state));
  if (unknown === undefined) return;
  throw new ThroughlineError('invalid', `Unknown task state "${unknown}".`, {
    hint: `Known states: ${TASK_STATES.join(', ')}.`,
  });
}

/**
 * `kept`: one session for all turns of the task. `fresh`: a new one for each turn, restored from the history. `blank`: a new one
 * for each turn, without the history.
 */
export const SESSION_MODES = ['kept', 'fresh', 'blank'] as const;
export type SessionMode = (typeof SESSION_MODES)[number];

/** Judges a turn: a command in the agent's sandbox, by its exit code; or an agent, by its verdict. */
export type Gate =
  | { readonly kind: 'command'; readonly command: string; readonly timeoutMs: number }
  | { readonly kind: 'agent'; readonly agent: string; readonly ask: string };

/** What is different for each kind of gate. A new kind does not compile until every such table has it. */
export type PerGate<T> = { readonly [K in Gate['kind']]: (gate: Extract<Gate, { kind: K }>) => T };

export function perGate<T>(gate: Gate, table: PerGate<T>): T {
  return (table[gate.kind] as (gate: Gate) => T)(gate);
}

/** The agent that judges; null: no agent does. */
export function judgeOf(gate: Gate | null): string | null {
  return gate && perGate<string | null>(gate, { command: () => null, agent: ({ agent }) => agent });
}

/** Replaces the texts of a task whose conversation was erased. */
export const ERASED = '[erased]';

/** The fields of a task as it is asked for, as it is stored, and as it is shown. */
interface TaskBasics {
  /** The caller's name for it within its plan; null: none. */
  readonly name: string | null;
  readonly goal: string;
  /** Null: the task ends with its first turn. */
  readonly gate: Gate | null;
  /** Tasks of one milestone share a conversation, and run one after another; null: a conversation of its own. */
  readonly milestone: string | null;
  /** The agent's id of a session to continue in, whatever `sessions` says; null: none. */
  readonly session: string | null;
  /** The id that its session shall have, chosen by the caller: its first turn opens the session, later turns resume it; null: none. */
  readonly newSession: string | null;
  readonly maxIterations: number;
  readonly budget: Budget;
  /** How often in a row an interrupted turn is retried without asking a person. */
  readonly retryInterrupted: number;
  /** A directory to work in; null: one of its own. */
  readonly cwd: string | null;
  /** The caller's name of a sandbox that it shares with others; null: one of its own. */
  readonly sandbox: string | null;
  readonly permissions: PermissionMode;
}

/** What a caller asks for, checked and complete. */
export interface TaskSpec extends TaskBasics {
  /** Null: the default agent. */
  readonly agent: string | null;
  /** Null: `kept` if the agent can reopen sessions, else `fresh`. */
  readonly sessions: SessionMode | null;
  /** Names of tasks of the same plan that must be done first. */
  readonly after: readonly string[];
}

/** The fields of a task that are shown as they are stored. */
export interface ShownTask extends TaskBasics {
  readonly id: string;
  readonly owner: string;
  /** Ids of tasks that must be done first. */
  readonly after: readonly string[];
  readonly agent: string;
  readonly sessions: SessionMode;
  readonly state: TaskState;
  readonly cancelRequested: boolean;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export interface Task extends ShownTask {
  /** The same for all tasks that were added together: the caller's request id, else an id of ours. */
  readonly plan: string;
  /** Where it can run. */
  readonly place: string;
  readonly progress: TaskProgress;
}

/** The fields of the progress of a task that are shown as they are stored. */
export interface ShownProgress {
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
}

export const TASK_KEY = 'task/';
export const MILESTONE_KEY = 'milestone/';

/** The key of the conversation that a task works in. Stores find the open tasks in a sandbox by it. */
export function conversationKeyOf({ id, milestone }: Pick<ShownTask, 'id' | 'milestone'>): string {
  return milestone === null ? `${TASK_KEY}${id}` : `${MILESTONE_KEY}${milestone}`;
}

/** Everything that the next runner of a task needs. Turns are found by their request ids. */
export interface TaskProgress extends ShownProgress {
  /** Null: not started. */
  readonly conversation: string | null;
  /** The turn to retry; null: the next turn is a new one. */
  readonly retryOf: string | null;
  /** What the next prompt says; null: the goal. */
  readonly feedback: Feedback | null;
  /** A turn has run in the session that the caller named, existing or new; or none was named. */
  readonly adopted: boolean;
}

export interface Feedback {
  /** The gate's result of the last turn; null: there is none. */
  readonly gate: GateResult | null;
  /** A person retried it; null: nobody did. */
  readonly person: { readonly say: string | null } | null;
}

export const DECISIONS = ['done', 'retry', 'ask', 'give-up'] as const;

/** The reason, for programs. */
export const DECISION_CODES = [
  'gate_passed',
  'no_gate',
  'gate_failed',
  'gate_asks',
  'gate_broken',
  'turn_interrupted',
  'turn_failed',
  'turn_cancelled',
  'iterations_spent',
  'budget_spent',
  'cost_unknown',
  'permission_denied',
  'task_failed',
] as const;

/**
 * What happens to a task after a turn, or instead of one.
 *
 * @example
 * const { progress } = await tl.tasks.task('parser');
 * console.log(progress.decision?.decision, progress.decision?.reason);
 */
export interface Decision {
  readonly decision: (typeof DECISIONS)[number];
  readonly code: (typeof DECISION_CODES)[number];
  readonly reason: string;
}

export const TURN_PURPOSES = ['work', 'gate'] as const;
export type TurnPurpose = (typeof TURN_PURPOSES)[number];

/** The fields of an ended turn of a task that are shown as they are stored. */
export interface ShownTaskTurn {
  readonly purpose: TurnPurpose;
  readonly round: number;
  readonly iteration: number;
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

/** An ended turn of a task. */
export interface TaskTurn extends ShownTaskTurn {
  /** Null: the submission was refused. */
  readonly turn: string | null;
  readonly conversation: string;
}

/** The payload of every kind of event of a task. */
export interface TaskEventPayloads {
  'task.added': { name: string | null; goal: string; milestone: string | null; agent: string; state: TaskState };
  /** It can be claimed (again). */
  'task.queued': { reason: string };
  'task.started': { round: number; iteration: number };
  'task.opened': { conversation: string };
  'task.turned': TaskTurn;
  'task.gated': { round: number; iteration: number; result: GateResult };
  'task.decided': Decision & { round: number; iteration: number; state: TaskState };
  'task.cancel_requested': { by: string };
  'task.cancelled': { by: string };
  'task.retried': { by: string; say: string | null };
}

export type TaskEventKind = keyof TaskEventPayloads;

export type TaskEventDraft = {
  [K in TaskEventKind]: { readonly kind: K; readonly payload: TaskEventPayloads[K] };
}[TaskEventKind];

/** One fact of a task. `seq` counts the events of all tasks of an owner, from 1, without gaps. */
export type TaskEvent = TaskEventDraft & { readonly seq: number; readonly task: string; readonly at: number };
