import type { UsagePage } from '../../../core/input/usage-page.ts';
import { type Task, type TaskTurn, taskHasEnded } from '../../../core/tasks/task.ts';
import { checkDecision } from '../../../core/tasks/task-decision.ts';
import { addUsage, NO_USAGE } from '../../../core/turn/usage.ts';
import type { LastTaskUsage, TaskChange, TaskFence, TaskRetry, TaskUsageRow } from '../../../ports/store/tasks.ts';
import { LAST_DAY, pageOf } from '../../shared/page.ts';
import { isBegun, retriedTask, type TaskRow, taskOf, taskSessionTaken } from '../../shared/tasks.ts';
import type { Database } from '../file/database.ts';
import { isConstraint } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';
import { appendTaskEvent, appendTaskEvents, taskRow } from './task-board.ts';
import { heldTask } from './task-claim.ts';

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
  const saved = { ...row, progress: JSON.stringify(progress) };
  tx.db.run(SAVE, saved.progress, process, row.no);
  for (const turn of turns) countTurn(tx, row, turn);
  appendTaskEvents(tx, row, events);
  if (state === undefined) return taskOf(saved);
  const endedAt = taskHasEnded(state) ? tx.now : null;
  tx.db.run(LEAVE, state, endedAt, row.no);
  if (state === 'done') queueNext(tx, row);
  if (state === 'cancelled') {
    appendTaskEvent(tx, row, { kind: 'task.cancelled', payload: { by: row.cancel_by ?? row.owner } });
  }
  return taskOf({ ...saved, state, ended_at: endedAt, cancel_by: null });
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

export function retryTask(tx: Tx, owner: string, id: string, retry: TaskRetry): Task {
  const row = taskRow(tx.db, owner, id);
  const { spec, progress } = retriedTask(row, retry);
  const state = tx.db.one(NOT_DONE, row.no) === undefined ? 'queued' : 'waiting';
  try {
    tx.db.run(AGAIN, state, spec, progress, row.no);
  } catch (error) {
    throw isConstraint(error) ? taskSessionTaken(row.session, error) : error;
  }
  appendTaskEvent(tx, row, { kind: 'task.retried', payload: { by: retry.by, say: retry.say } });
  return taskOf(taskRow(tx.db, owner, id));
}
