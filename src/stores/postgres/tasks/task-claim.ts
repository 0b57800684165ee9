import type { TaskClaim, TaskClaimRequest } from '../../../ports/store/tasks.ts';
import { type Candidate, fairestTask, type TaskRow } from '../../shared/tasks.ts';
import { giveBack, takeTask } from '../../shared/verbs/task-lease.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { writer } from '../steps.ts';

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
  await writer(giveBack)(tx, expired, 'The lease of its runner expired.');
  const found = await claimableTask(tx.sql, request, tx.monotonic);
  return found === null || found === 'expired' ? null : writer(takeTask)(tx, found, request);
}
