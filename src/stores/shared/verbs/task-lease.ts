import { storedProcess } from '../../../core/process.ts';
import type { TaskProgress } from '../../../core/tasks/task.ts';
import type { TaskClaim, TaskClaimRequest, TaskFence, TaskHolder } from '../../../ports/store/tasks.ts';
import { parsed } from '../rows.ts';
import { type TaskRow, taskOf } from '../tasks.ts';
import { all, changed, run, type Steps, type StepTx } from './steps.ts';
import { appendTaskEvents, taskRow } from './task-board.ts';

const SET_SERVED = 'UPDATE boards SET served = ? WHERE owner = ?';
const TAKE = `
  UPDATE tasks SET state = 'running', epoch = epoch + 1, worker = ?, process = ?, lease_end = ?,
    started_at = coalesce(started_at, ?), ended_at = NULL
  WHERE no = ?`;
const GIVE_BACK = "UPDATE tasks SET state = 'queued', worker = NULL, process = NULL, lease_end = NULL WHERE no = ?";
const RENEW = "UPDATE tasks SET lease_end = ? WHERE id = ? AND owner = ? AND epoch = ? AND state = 'running'";
const HOLDERS = `
  SELECT worker AS id, process, max(lease_end) AS "leaseEnd" FROM tasks WHERE state = 'running' GROUP BY worker, process`;
const HELD_BY = "SELECT * FROM tasks WHERE state = 'running' AND worker = ? ORDER BY no";

export function* takeTask(tx: StepTx, found: TaskRow, { worker, leaseMs }: TaskClaimRequest): Steps<TaskClaim> {
  yield* run(TAKE, worker.id, JSON.stringify(worker.process), tx.monotonic + leaseMs, tx.now, found.no);
  const { round, iteration } = JSON.parse(found.progress) as TaskProgress;
  const no = yield* appendTaskEvents(tx, found, { kind: 'task.started', payload: { round, iteration } });
  yield* run(SET_SERVED, no, found.owner);
  const row = yield* taskRow(found.owner, found.id);
  return {
    fence: { task: row.id, owner: row.owner, epoch: row.epoch },
    task: taskOf(row),
    gate: storedProcess(parsed(row.gate)),
  };
}

export function* giveBack(tx: StepTx, rows: readonly TaskRow[], reason: string): Steps<void> {
  for (const row of rows) {
    yield* run(GIVE_BACK, row.no);
    yield* appendTaskEvents(tx, row, { kind: 'task.queued', payload: { reason } });
  }
}

/** Returns those that are lost. Always in the same order, so that two transactions do not deadlock. */
export function* renewTasks(tx: StepTx, fences: readonly TaskFence[], leaseMs: number): Steps<TaskFence[]> {
  const lost: TaskFence[] = [];
  for (const fence of fences.toSorted((a, b) => (a.task < b.task ? -1 : 1))) {
    const { task, owner, epoch } = fence;
    if ((yield* changed(RENEW, tx.monotonic + leaseMs, task, owner, epoch)) === 0) lost.push(fence);
  }
  return lost;
}

export function* releaseTask(tx: StepTx, fence: TaskFence): Steps<void> {
  const row = yield* taskRow(fence.owner, fence.task);
  if (row.epoch === fence.epoch && row.state === 'running') yield* giveBack(tx, [row], 'Its runner was closed.');
}

export function* taskHolders(monotonic: number): Steps<TaskHolder[]> {
  const rows = yield* all<{ id: string; process: string; leaseEnd: number }>(HOLDERS);
  return rows.map(({ id, process, leaseEnd }) => ({
    id,
    process: JSON.parse(process),
    expired: leaseEnd <= monotonic,
  }));
}

export function* forgetHolder(tx: StepTx, worker: string): Steps<void> {
  yield* giveBack(tx, yield* all<TaskRow>(HELD_BY, worker), 'Its runner is gone.');
}
