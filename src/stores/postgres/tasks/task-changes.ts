import type { UsagePage } from '../../../core/input/usage-page.ts';
import { type Task, type TaskTurn, taskHasEnded } from '../../../core/tasks/task.ts';
import { checkDecision } from '../../../core/tasks/task-decision.ts';
import { addUsage, NO_USAGE } from '../../../core/turn/usage.ts';
import type { LastTaskUsage, TaskChange, TaskFence, TaskRetry, TaskUsageRow } from '../../../ports/store/tasks.ts';
import { LAST_DAY, pageOf } from '../../shared/page.ts';
import { isBegun, retriedTask, type TaskRow, taskOf, taskSessionTaken } from '../../shared/tasks.ts';
import { dayOf } from '../../shared/totals.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { violated } from '../server/faults.ts';
import { appendTaskEvent, taskRow } from './task-board.ts';
import { heldTask } from './task-claim.ts';

const SAVE = 'UPDATE tasks SET progress = $1, gate = $2 WHERE no = $3';
const LEAVE = `
  UPDATE tasks SET state = $1, worker = NULL, process = NULL, lease_end = NULL, ended_at = $2, cancel_by = NULL WHERE no = $3`;
const ASK_CANCEL = 'UPDATE tasks SET cancel_by = $1 WHERE no = $2 AND cancel_by IS NULL';
const AGAIN = 'UPDATE tasks SET state = $1, spec = $2, progress = $3, ended_at = NULL, cancel_by = NULL WHERE no = $4';
const NOT_DONE = `
  SELECT 1 FROM task_after a JOIN tasks f ON f.no = a.first WHERE a.task = $1 AND f.state <> 'done' LIMIT 1`;
const WAITING = `
  SELECT t.* FROM task_after a JOIN tasks t ON t.no = a.task WHERE a.first = $1 AND t.state = 'waiting' ORDER BY t.no`;
const QUEUE = "UPDATE tasks SET state = 'queued' WHERE no = $1";
const SPENT = 'SELECT turns, usage FROM task_usage WHERE owner = $1 AND day = $2 AND task = $3';
const SAVE_SPENT = `
  INSERT INTO task_usage (owner, day, task, turns, usage) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (owner, day, task) DO UPDATE SET turns = excluded.turns, usage = excluded.usage`;
const USAGE = `
  SELECT u.day, t.id AS task, t.name, t.milestone, u.turns, u.usage FROM task_usage u JOIN tasks t ON t.no = u.task
  WHERE u.owner = $1 AND u.day >= $2 AND (u.day, u.task) < ($3, $4) ORDER BY u.day DESC, u.task DESC LIMIT $5`;

export async function commitTask(tx: Tx, fence: TaskFence, change: TaskChange): Promise<Task> {
  const row = await heldTask(tx, fence);
  const { progress, state, gate, turns = [], events } = change;
  if (progress.decision !== null) checkDecision(progress.decision);
  const process = gate === undefined ? row.gate : gate && JSON.stringify(gate);
  tx.sql.run(SAVE, JSON.stringify(progress), process, row.no);
  for (const turn of turns) await countTurn(tx, row, turn);
  for (const event of events) await appendTaskEvent(tx, row, event);
  if (state !== undefined) tx.sql.run(LEAVE, state, taskHasEnded(state) ? tx.now : null, row.no);
  if (state === 'done') await queueNext(tx, row);
  if (state === 'cancelled') {
    await appendTaskEvent(tx, row, { kind: 'task.cancelled', payload: { by: row.cancel_by ?? row.owner } });
  }
  return taskOf(await taskRow(tx.sql, row.owner, row.id));
}

async function queueNext(tx: Tx, done: TaskRow): Promise<void> {
  for (const row of await tx.sql.all<TaskRow>(WAITING, done.no)) {
    if ((await tx.sql.one(NOT_DONE, row.no)) !== undefined) continue;
    tx.sql.run(QUEUE, row.no);
    await appendTaskEvent(tx, row, { kind: 'task.queued', payload: { reason: 'The tasks it waited for are done.' } });
  }
}

async function countTurn(tx: Tx, row: TaskRow, turn: TaskTurn): Promise<void> {
  const day = dayOf(turn.endedAt);
  const before = await tx.sql.one<{ turns: number; usage: string }>(SPENT, row.owner, day, row.no);
  const usage = addUsage(before === undefined ? NO_USAGE : JSON.parse(before.usage), turn.usage);
  tx.sql.run(SAVE_SPENT, row.owner, day, row.no, (before?.turns ?? 0) + 1, JSON.stringify(usage));
}

export async function taskUsage(sql: Sql, owner: string, page: UsagePage<LastTaskUsage> = {}): Promise<TaskUsageRow[]> {
  const { since = '', limit, before } = page;
  const last = before === undefined ? [LAST_DAY, 0] : [before.day, (await taskRow(sql, owner, before.task)).no];
  type Row = Omit<TaskUsageRow, 'usage'> & { usage: string };
  const rows = await sql.all<Row>(USAGE, owner, since, ...last, limit ?? null);
  return pageOf(rows, (row) => ({ ...row, usage: JSON.parse(row.usage) }), { limit });
}

export async function cancelTask(tx: Tx, owner: string, id: string, by: string): Promise<Task> {
  const row = await taskRow(tx.sql, owner, id);
  if (row.state === 'running' || isBegun(row)) {
    if ((await tx.sql.changed(ASK_CANCEL, by, row.no)) > 0) {
      await appendTaskEvent(tx, row, { kind: 'task.cancel_requested', payload: { by } });
    }
  } else if (!taskHasEnded(row.state)) {
    tx.sql.run(LEAVE, 'cancelled', tx.now, row.no);
    await appendTaskEvent(tx, row, { kind: 'task.cancelled', payload: { by } });
  }
  return taskOf(await taskRow(tx.sql, owner, id));
}

export async function retryTask(tx: Tx, owner: string, id: string, retry: TaskRetry): Promise<Task> {
  const row = await taskRow(tx.sql, owner, id);
  const { spec, progress } = retriedTask(row, retry);
  const state = (await tx.sql.one(NOT_DONE, row.no)) === undefined ? 'queued' : 'waiting';
  await tx.sql.changed(AGAIN, state, spec, progress, row.no).catch((error: unknown) => {
    throw violated(error) === null ? error : taskSessionTaken(row.session, error);
  });
  await appendTaskEvent(tx, row, { kind: 'task.retried', payload: { by: retry.by, say: retry.say } });
  return taskOf(await taskRow(tx.sql, owner, id));
}
