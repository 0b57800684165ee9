import { type Failure, ThroughlineError } from '../errors.ts';
import type { PermissionMode, TurnEnd } from '../turn.ts';
import type { Usage } from '../usage.ts';
import type { GateResult } from './task-gate.ts';

/*
 * A task is a goal, gone over in turns until its gate passes.
 *
 *   waiting (on the tasks it comes after) ──▶ queued ──▶ running ──▶ done | failed | cancelled
 *                                              ▲  ▲         │ │
 *                                              │  └─────────┘ │  its runner was ended: nothing is lost, another goes on
 *                                              │              ▼
 *                                              └─────────── asking (a person: nothing happens until somebody says so)
 *
 * A person may also have one tried again that has failed or was cancelled. What is done stays done. One that comes after a
 * task that failed goes on waiting: that task may be tried again.
 */
export const TASK_ENDS = ['done', 'failed', 'cancelled'] as const;
export type TaskEnd = (typeof TASK_ENDS)[number];
export const TASK_STATES = ['waiting', 'queued', 'running', 'asking', ...TASK_ENDS] as const;
export type TaskState = (typeof TASK_STATES)[number];

export function taskHasEnded(state: TaskState): state is TaskEnd {
  return (TASK_ENDS as readonly TaskState[]).includes(state);
}

/** Throws `invalid` for what is no state of a task. */
export function checkTaskStates(states: readonly TaskState[]): void {
  const strange = states.find((state) => !TASK_STATES.includes(state));
  if (strange === undefined) return;
  throw new ThroughlineError('invalid', `A task is never "${strange}".`, { hint: `It is ${TASK_STATES.join(', ')}.` });
}

/** `kept`: one session for all turns of the task. `fresh`: a new one for each turn, told the history by the ladder. */
export const SESSION_MODES = ['kept', 'fresh'] as const;
export type SessionMode = (typeof SESSION_MODES)[number];

/** What judges: a command run where the agent works, by its exit code; or an agent, by its verdict. */
export type Gate =
  | { readonly kind: 'command'; readonly command: string; readonly timeoutMs: number }
  | { readonly kind: 'agent'; readonly agent: string; readonly ask: string };

/** The most that a task may cost. What is null is not limited. */
export interface Budget {
  readonly costMicros: number | null;
  /** Of every kind that the agent reports: in, out, read from and written to its cache. */
  readonly tokens: number | null;
}

/** What stands in place of words of a task whose conversation was erased. */
export const ERASED = '[erased]';

/** What a caller wants done, checked and complete. */
export interface TaskSpec {
  /** The caller's name for it within its plan; null: none. */
  readonly name: string | null;
  readonly goal: string;
  /** Null: the end of its first turn is the end of the task. */
  readonly gate: Gate | null;
  /** Tasks of one milestone share a conversation, and run one after another; null: a conversation of its own. */
  readonly milestone: string | null;
  /** Null: the default agent. */
  readonly agent: string | null;
  /** Null: kept where the agent can, else fresh. */
  readonly sessions: SessionMode | null;
  /** A native session to go on in, whatever `sessions` says; null: none. */
  readonly session: string | null;
  readonly maxIterations: number;
  readonly budget: Budget;
  /** Names of tasks of the same plan that have to be done first. */
  readonly after: readonly string[];
  /** How often in a row a turn that was interrupted is tried again unasked; 0: a person is asked. */
  readonly retryInterrupted: number;
  /** A directory to work in; null: one of its own. */
  readonly cwd: string | null;
  /** The name of a sandbox that it shares with others; null: one of its own. */
  readonly sandbox: string | null;
  readonly permissions: PermissionMode;
}

export interface Task extends TaskSpec {
  readonly id: string;
  readonly owner: string;
  /** All that were added together: the caller's request id, else ours. */
  readonly plan: string;
  /** Those who come first have to be done: ids of tasks. */
  readonly after: readonly string[];
  readonly agent: string;
  readonly sessions: SessionMode;
  readonly state: TaskState;
  readonly progress: TaskProgress;
  readonly cancelRequested: boolean;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** Where a task stands: all that its next runner needs to know. Turns are found again by their request ids. */
export interface TaskProgress {
  /** Null: not begun. */
  readonly conversation: string | null;
  /** 1, and one more for every time a person had it tried again. */
  readonly round: number;
  /** The turn of this round that is next or running, from 1. */
  readonly iteration: number;
  /** How often this turn was tried again after an interruption. */
  readonly tries: number;
  /** The turn that is to be tried again; null: it is a turn of its own. */
  readonly retryOf: string | null;
  /** What the next prompt says; null: the goal. */
  readonly feedback: Feedback | null;
  /** A turn has run in the session that the caller named, or none was named. */
  readonly adopted: boolean;
  /** Turns that have ended, of the agent and of the gate. */
  readonly turns: number;
  readonly spent: Usage;
  readonly lockWaits: { readonly count: number; readonly ms: number };
  /** The last one; null: none yet. */
  readonly decision: Decision | null;
}

export interface Feedback {
  /** What the gate said of the last turn; null: it has not judged. */
  readonly gate: GateResult | null;
  /** A person had it tried again; null: nobody did. */
  readonly person: { readonly say: string | null } | null;
}

export const DECISIONS = ['done', 'retry', 'ask', 'give-up'] as const;

/** Why, in one word that a program can tell apart. */
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
  'task_failed',
] as const;

/** What becomes of a task after a turn, or instead of one. */
export interface Decision {
  readonly decision: (typeof DECISIONS)[number];
  readonly code: (typeof DECISION_CODES)[number];
  readonly reason: string;
}

export const TURN_PURPOSES = ['work', 'gate'] as const;
export type TurnPurpose = (typeof TURN_PURPOSES)[number];

/** A turn that was had for a task, as it ended. */
export interface TaskTurn {
  readonly purpose: TurnPurpose;
  readonly round: number;
  readonly iteration: number;
  /** Null: it was refused before it was one. */
  readonly turn: string | null;
  readonly conversation: string;
  readonly agent: string;
  readonly outcome: TurnEnd;
  readonly failure: Failure | null;
  readonly sessionId: string | null;
  /** How its session was given the context; null: it never got so far. */
  readonly rung: string | null;
  readonly usage: Usage;
  readonly lockWaits: { readonly count: number; readonly ms: number };
  readonly endedAt: number;
}

/** The payload of every kind of event of a task. */
export interface TaskEventPayloads {
  'task.added': { name: string | null; goal: string; milestone: string | null; agent: string; state: TaskState };
  /** It can be taken up (again). */
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

/** One fact of a task. `seq` counts all events of an owner's tasks from 1 without gaps: a board is one stream. */
export type TaskEvent = {
  [K in TaskEventKind]: {
    readonly seq: number;
    readonly task: string;
    readonly kind: K;
    readonly at: number;
    readonly payload: TaskEventPayloads[K];
  };
}[TaskEventKind];

export type TaskEventDraft = {
  [K in TaskEventKind]: { readonly kind: K; readonly payload: TaskEventPayloads[K] };
}[TaskEventKind];
