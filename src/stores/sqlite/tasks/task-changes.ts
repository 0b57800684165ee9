import { ThroughlineError } from '../../../core/errors.ts';
import type { UsagePage } from '../../../core/input/usage-page.ts';
import {
  ERASED,
  type Task,
  type TaskProgress,
  type TaskSpec,
  type TaskTurn,
  taskHasEnded,
} from '../../../core/tasks/task.ts';
import { checkDecision } from '../../../core/tasks/task-decision.ts';
import { retriedProgress } from '../../../core/tasks/task-progress.ts';
import { addUsage, NO_USAGE } from '../../../core/turn/usage.ts';
import type { LastTaskUsage, TaskChange, TaskFence, TaskRetry, TaskUsageRow } from '../../../ports/store/tasks.ts';
import type { Database } from '../file/database.ts';
import { isConstraint } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';
import { LAST_DAY, pageOf } from '../reading/page.ts';
import { appendTaskEvent, type TaskRow, taskOf, taskRow } from './task-board.ts';
import { heldTask } from './task-claim.ts';
import { sessionTaken } from './task-plans.ts';

const SAVE = 'UPDATE tasks SET progress = ?, gate = ? WHERE no = ?';
const LEAVE = `
  UPDATE tasks SET state = ?, worker = NULL, process = NULL, lease_end = NULL, ended_at = ?, cancel_by = NULL WHERE no = ?`;
const ASK_CANCEL = 'UPDATE tasks SET cancel_by = ? WHERE no = ? AND cancel_by IS NULL';
const AGAIN = 'UPDATE tasks SET state = ?, spec = ?, progress = ?, ended_at = NULL, cancel_by = NULL WHERE no = ?';
const NOT_DONE = `
  SELECT 1 FROM task_after a JOIN tasks f ON f.no = a.first WHERE a.task = ? AND f.state <> 'done' LIMIT 1`;
const WAITING = `
  SELECT t.* FROM task_after a JOIN tasks t ON t.no = a.task WHERE a.first = ? AND t.state = 'waiting' ORDER BY t.no`;
const QUEUE = "UPDATE tasks SET state = 'queued' WHERE no = ?";
const SPENT = 'SELECT turns, usage FROM task_usage WHERE owner = ? AND day = ? AND task = ?';
const SAVE_SPENT = `
  INSERT INTO task_usage (owner, day, task, turns, usage) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (owner, day, task) DO UPDATE SET turns = excluded.turns, usage = excluded.usage`;
const USAGE = `
  SELECT u.day, t.id AS task, t.name, t.milestone, u.turns, u.usage FROM task_usage u JOIN tasks t ON t.no = u.task
  WHERE u.owner = ? AND u.day >= ? AND (u.day, u.task) < (?, ?) ORDER BY u.day DESC, u.task DESC`;

export function commitTask(tx: Tx, fence: TaskFence, change: TaskChange): Task {
  const row = heldTask(tx, fence);
  const { progress, state, gate, turns = [], events } = change;
  if (progress.decision !== null) checkDecision(progress.decision);
  const process = gate === undefined ? row.gate : gate && JSON.stringify(gate);
  tx.db.run(SAVE, JSON.stringify(progress), process, row.no);
  for (const turn of turns) countTurn(tx, row, turn);
  for (const event of events) appendTaskEvent(tx, row, event);
  if (state !== undefined) tx.db.run(LEAVE, state, taskHasEnded(state) ? tx.now : null, row.no);
  if (state === 'done') queueNext(tx, row);
  if (state === 'cancelled') {
    appendTaskEvent(tx, row, { kind: 'task.cancelled', payload: { by: row.cancel_by ?? row.owner } });
  }
  return taskOf(taskRow(tx.db, row.owner, row.id));
}

function queueNext(tx: Tx, done: TaskRow): void {
  for (const row of tx.db.all<TaskRow>(WAITING, done.no)) {
    if (tx.db.one(NOT_DONE, row.no) !== undefined) continue;
    tx.db.run(QUEUE, row.no);
    appendTaskEvent(tx, row, { kind: 'task.queued', payload: { reason: 'The tasks it waited for are done.' } });
  }
}

function countTurn(tx: Tx, row: TaskRow, turn: TaskTurn): void {
  const day = new Date(turn.endedAt).toISOString().slice(0, 10);
  const before = tx.db.one<{ turns: number; usage: string }>(SPENT, row.owner, day, row.no);
  const usage = addUsage(before === undefined ? NO_USAGE : JSON.parse(before.usage), turn.usage);
  tx.db.run(SAVE_SPENT, row.owner, day, row.no, (before?.turns ?? 0) + 1, JSON.stringify(usage));
}

export function taskUsage(db: Database, owner: string, page: UsagePage<LastTaskUsage> = {}): TaskUsageRow[] {
  const { since = '', limit, before } = page;
  const last = before === undefined ? [LAST_DAY, 0] : [before.day, taskRow(db, owner, before.task).no];
  const rows = db.each<Omit<TaskUsageRow, 'usage'> & { usage: string }>(USAGE, owner, since, ...last);
  return pageOf(rows, (row) => ({ ...row, usage: JSON.parse(row.usage) }), { limit });
}

export function cancelTask(tx: Tx, owner: string, id: string, by: string): Task {
  const row = taskRow(tx.db, owner, id);
  if (row.state === 'running' || isBegun(row)) {
    if (tx.db.run(ASK_CANCEL, by, row.no).changes > 0) {
      appendTaskEvent(tx, row, { kind: 'task.cancel_requested', payload: { by } });
    }
  } else if (!taskHasEnded(row.state)) {
    tx.db.run(LEAVE, 'cancelled', tx.now, row.no);
    appendTaskEvent(tx, row, { kind: 'task.cancelled', payload: { by } });
  }
  return taskOf(taskRow(tx.db, owner, id));
}

/** It was given back, perhaps during a turn: the next runner ends that turn and counts its cost. */
function isBegun({ state, progress }: TaskRow): boolean {
  return state === 'queued' && (JSON.parse(progress) as TaskProgress).conversation !== null;
}

export function retryTask(tx: Tx, owner: string, id: string, retry: TaskRetry): Task {
  const row = taskRow(tx.db, owner, id);
  if (row.state !== 'asking' && row.state !== 'failed' && row.state !== 'cancelled') {
    throw new ThroughlineError('conflict', `The task is ${row.state}.`, {
      hint: 'Only a task that asks, has failed or was cancelled can be retried.',
    });
  }
  const { by, say, ...changed } = retry;
  const before = JSON.parse(row.spec) as TaskSpec;
  if (before.goal === ERASED) {
    throw new ThroughlineError('conflict', 'The goal of the task was erased with its conversation.', {
      hint: 'Add a new task.',
    });
  }
  const spec = { ...before, ...changed };
  const progress = retriedProgress(JSON.parse(row.progress) as TaskProgress, say);
  const state = tx.db.one(NOT_DONE, row.no) === undefined ? 'queued' : 'waiting';
  try {
    tx.db.run(AGAIN, state, JSON.stringify(spec), JSON.stringify(progress), row.no);
  } catch (error) {
    throw isConstraint(error) ? sessionTaken(row.session, error) : error;
  }
  appendTaskEvent(tx, row, { kind: 'task.retried', payload: { by, say } });
  return taskOf(taskRow(tx.db, owner, id));
}
