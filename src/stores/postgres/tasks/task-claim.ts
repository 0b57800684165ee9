import { storedProcess } from '../../../core/process.ts';
import type { TaskProgress } from '../../../core/tasks/task.ts';
import type { TaskClaim, TaskClaimRequest, TaskFence, TaskHolder } from '../../../ports/store/tasks.ts';
import { parsed } from '../../shared/rows.ts';
import { type Candidate, fairestTask, type TaskRow, taskOf, taskUnder } from '../../shared/tasks.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { appendTaskEvent, taskRow } from './task-board.ts';

const EXPIRED = "SELECT * FROM tasks WHERE state = 'running' AND lease_end <= $2 AND id <> ALL($1::text[]) ORDER BY no";
const RUNNING = `
  SELECT count(*) AS count FROM tasks WHERE state = 'running' AND place = $2 AND id <> ALL($1::text[])`;
/** The largest limit of a plan in work applies to all tasks, so that this plan does not take the slots of others. */
const LARGEST_LIMIT = `
  SELECT max(parallel) AS most FROM tasks WHERE state IN ('queued', 'running') AND place = $2 AND id <> ALL($1::text[])`;
/**
 * For each owner with queued tasks: the next one that may run. Tasks of one milestone share a conversation, so only one of them runs at
 * a time.
 */
const CANDIDATES = `
  SELECT n.*, b.served, (SELECT count(*) FROM tasks r WHERE r.state = 'running' AND r.owner = n.owner) AS running
  FROM (SELECT DISTINCT owner FROM tasks WHERE state = 'queued') o
    JOIN LATERAL (
      SELECT * FROM tasks t WHERE t.state = 'queued' AND t.owner = o.owner AND t.id <> ALL($1::text[]) AND t.place IN ($2, 'any')
        AND ($3::text[] IS NULL OR t.id = ANY($3))
        AND (t.parallel IS NULL OR t.plan NOT IN (
          SELECT r.plan FROM tasks r
          WHERE r.state = 'running' AND r.owner = o.owner AND r.parallel IS NOT NULL AND r.id <> ALL($1::text[])
          GROUP BY r.plan HAVING count(*) >= max(r.parallel)))
        AND (t.milestone IS NULL OR NOT EXISTS (
          SELECT 1 FROM tasks m WHERE m.owner = t.owner AND m.milestone = t.milestone AND m.state = 'running'))
      ORDER BY t.no LIMIT 1) n ON true
    JOIN boards b ON b.owner = n.owner`;
const TO_CANCEL = `
  SELECT * FROM tasks WHERE state = 'queued' AND cancel_by IS NOT NULL AND id <> ALL($1::text[]) AND place IN ($2, 'any')
    AND ($3::text[] IS NULL OR id = ANY($3)) ORDER BY no LIMIT 1`;
const SET_SERVED = 'UPDATE boards SET served = $1 WHERE owner = $2';
const TAKE = `
  UPDATE tasks SET state = 'running', epoch = epoch + 1, worker = $1, process = $2, lease_end = $3,
    started_at = coalesce(started_at, $4), ended_at = NULL
  WHERE no = $5`;
const GIVE_BACK = "UPDATE tasks SET state = 'queued', worker = NULL, process = NULL, lease_end = NULL WHERE no = $1";
const RENEW = "UPDATE tasks SET lease_end = $1 WHERE id = $2 AND owner = $3 AND epoch = $4 AND state = 'running'";
const HOLDERS = `
  SELECT worker AS id, process, max(lease_end) <= $1 AS expired FROM tasks WHERE state = 'running' GROUP BY worker, process`;
const HELD_BY = "SELECT * FROM tasks WHERE state = 'running' AND worker = $1 ORDER BY no";

const notOurs = ({ held = [], aside = [] }: TaskClaimRequest) => [...held, ...aside];

/** The task to claim. Reads only: runners ask this often, and must not lock anything. */
export async function claimableTask(
  sql: Sql,
  request: TaskClaimRequest,
  monotonic: number,
): Promise<TaskRow | 'expired' | null> {
  const { aside = [], place, only = null } = request;
  if ((await sql.one(EXPIRED, notOurs(request), monotonic)) !== undefined) return 'expired';
  const cancelled = await sql.one<TaskRow>(TO_CANCEL, aside, place, only);
  if (cancelled !== undefined) return cancelled;
  const running = (await sql.one<{ count: number }>(RUNNING, aside, place))?.count ?? 0;
  const most = (await sql.one<{ most: number | null }>(LARGEST_LIMIT, aside, place))?.most ?? 0;
  if (running >= Math.max(request.limit, most)) return null;
  type Row = TaskRow & Pick<Candidate<TaskRow>, 'running' | 'served'>;
  const rows = await sql.all<Row>(CANDIDATES, aside, place, only);
  return fairestTask(rows.map((row) => ({ row, running: row.running, served: row.served })));
}

export async function claimTask(tx: Tx, request: TaskClaimRequest): Promise<TaskClaim | null> {
  const expired = await tx.sql.all<TaskRow>(EXPIRED, notOurs(request), tx.monotonic);
  for (const row of expired) await giveBack(tx, row, 'The lease of its runner expired.');
  const found = await claimableTask(tx.sql, request, tx.monotonic);
  if (found === null || found === 'expired') return null;
  const { worker, leaseMs } = request;
  tx.sql.run(TAKE, worker.id, JSON.stringify(worker.process), tx.monotonic + leaseMs, tx.now, found.no);
  const { round, iteration } = JSON.parse(found.progress) as TaskProgress;
  const no = await appendTaskEvent(tx, found, { kind: 'task.started', payload: { round, iteration } });
  tx.sql.run(SET_SERVED, no, found.owner);
  const row = await taskRow(tx.sql, found.owner, found.id);
  return {
    fence: { task: row.id, owner: row.owner, epoch: row.epoch },
    task: taskOf(row),
    gate: storedProcess(parsed(row.gate)),
  };
}

async function giveBack(tx: Tx, row: TaskRow, reason: string): Promise<void> {
  tx.sql.run(GIVE_BACK, row.no);
  await appendTaskEvent(tx, row, { kind: 'task.queued', payload: { reason } });
}

export async function renewTasks(tx: Tx, fences: readonly TaskFence[], leaseMs: number): Promise<TaskFence[]> {
  const lost: TaskFence[] = [];
  for (const fence of fences.toSorted((a, b) => (a.task < b.task ? -1 : 1))) {
    const { task, owner, epoch } = fence;
    if ((await tx.sql.changed(RENEW, tx.monotonic + leaseMs, task, owner, epoch)) === 0) lost.push(fence);
  }
  return lost;
}

export async function releaseTask(tx: Tx, fence: TaskFence): Promise<void> {
  const row = await taskRow(tx.sql, fence.owner, fence.task);
  if (row.epoch === fence.epoch && row.state === 'running') await giveBack(tx, row, 'Its runner was closed.');
}

/** The row under the fence. Throws `lease_lost`. */
export async function heldTask(tx: Tx, fence: TaskFence): Promise<TaskRow> {
  return taskUnder(await taskRow(tx.sql, fence.owner, fence.task), fence);
}

export async function taskHolders(sql: Sql, monotonic: number): Promise<TaskHolder[]> {
  const rows = await sql.all<{ id: string; process: string; expired: boolean }>(HOLDERS, monotonic);
  return rows.map(({ id, process, expired }) => ({ id, process: JSON.parse(process), expired }));
}

export async function forgetHolder(tx: Tx, worker: string): Promise<void> {
  for (const row of await tx.sql.all<TaskRow>(HELD_BY, worker)) await giveBack(tx, row, 'Its runner is gone.');
}
