import { DamagedRows, isDamage, type ThroughlineError } from '../../../core/errors.ts';
import type { TaskClaim, TaskClaimRequest } from '../../../ports/store/tasks.ts';
import { type Candidate, fairestTask, type TaskRow } from '../../shared/tasks.ts';
import { giveBack, takeTask } from '../../shared/verbs/task-lease.ts';
import type { Database } from '../file/database.ts';
import { storageFault, unlessDamaged } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';
import { writer } from '../steps.ts';

/** The rows of a task that is set aside may be damaged. Its number is found in an index, so that they are not read. */
const ASIDE = 'IN (SELECT no FROM tasks WHERE id IN (SELECT value FROM json_each(?1)))';
const EXPIRED = `SELECT * FROM tasks WHERE state = 'running' AND CASE WHEN no ${ASIDE} THEN 0 ELSE lease_end <= ?2 END`;
const RUNNING = `
  SELECT count(*) AS count FROM tasks WHERE state = 'running' AND CASE WHEN no ${ASIDE} THEN 0 ELSE place = ?2 END`;
/** The largest limit of a plan in work applies to all tasks, so that this plan does not take the slots of others. */
const LARGEST_LIMIT = `
  SELECT max(parallel) AS most FROM tasks
  WHERE state IN ('queued', 'running') AND CASE WHEN no ${ASIDE} THEN 0 ELSE place = ?2 AND parallel IS NOT NULL END`;
const RUNNING_OF = "SELECT count(*) AS count FROM tasks WHERE state = 'running' AND owner = ?";
const NEXT_OWNER = "SELECT owner FROM tasks WHERE state = 'queued' AND owner > ? ORDER BY owner LIMIT 1";
const SERVED = 'SELECT served FROM boards WHERE owner = ?';
/** Tasks of one milestone share a conversation, so only one of them runs at a time. */
const NEXT_OF = `
  SELECT * FROM tasks t WHERE t.state = 'queued' AND t.owner = ?2 AND CASE WHEN t.no ${ASIDE} THEN 0 ELSE t.place IN (?3, 'any')
    AND (?4 IS NULL OR t.id IN (SELECT value FROM json_each(?4)))
    AND (t.parallel IS NULL OR t.plan NOT IN (
      SELECT r.plan FROM tasks r
      WHERE r.state = 'running' AND r.owner = ?2 AND CASE WHEN r.no ${ASIDE} THEN 0 ELSE r.parallel IS NOT NULL END
      GROUP BY r.plan HAVING count(*) >= max(r.parallel)))
    AND (t.milestone IS NULL OR NOT EXISTS (
      SELECT 1 FROM tasks m WHERE m.owner = t.owner AND m.milestone = t.milestone AND m.state = 'running')) END
  ORDER BY t.no LIMIT 1`;
const TO_CANCEL = `
  SELECT * FROM tasks WHERE state = 'queued' AND CASE WHEN no ${ASIDE} THEN 0
    ELSE cancel_by IS NOT NULL AND place IN (?2, 'any') AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3))) END
  ORDER BY no LIMIT 1`;
const OPEN = "SELECT no FROM tasks WHERE state IN ('queued', 'running')";
const ROW = 'SELECT * FROM tasks WHERE no = ?';
const ID_OF = 'SELECT id FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE no = ?';

const notOurs = ({ held = [], aside = [] }: TaskClaimRequest) => JSON.stringify([...held, ...aside]);

/** The task to claim. Reads only: runners ask this often, and must not lock anything. Throws `DamagedRows` for one that cannot be read. */
export function claimableTask(db: Database, request: TaskClaimRequest, monotonic: number): TaskRow | 'expired' | null {
  try {
    return nextTask(db, request, monotonic);
  } catch (error) {
    const fault = storageFault(error);
    if (isDamage(fault)) findDamaged(db, request, fault);
    throw error;
  }
}

function nextTask(db: Database, request: TaskClaimRequest, monotonic: number): TaskRow | 'expired' | null {
  const aside = JSON.stringify(request.aside ?? []);
  if (db.one(EXPIRED, notOurs(request), monotonic) !== undefined) return 'expired';
  const ids = request.only === undefined ? null : JSON.stringify(request.only);
  const cancelled = db.one<TaskRow>(TO_CANCEL, aside, request.place, ids);
  if (cancelled !== undefined) return cancelled;
  const running = db.one<{ count: number }>(RUNNING, aside, request.place)?.count ?? 0;
  const most = db.one<{ most: number | null }>(LARGEST_LIMIT, aside, request.place)?.most ?? 0;
  return running >= Math.max(request.limit, most) ? null : fairestTask(candidates(db, aside, request.place, ids));
}

function findDamaged(db: Database, { aside = [] }: TaskClaimRequest, fault: ThroughlineError): void {
  for (const { no } of db.all<{ no: number }>(OPEN)) {
    const id = db.one<{ id: string }>(ID_OF, no)?.id ?? '';
    const isWhole = aside.includes(id) || unlessDamaged(() => db.one(ROW, no) !== undefined, false);
    if (!isWhole) throw new DamagedRows(id, fault);
  }
}

/** For each owner with queued tasks: the next one that may run. */
function* candidates(db: Database, aside: string, place: string, ids: string | null): Generator<Candidate<TaskRow>> {
  for (let owner = ''; ; ) {
    const next = db.one<{ owner: string }>(NEXT_OWNER, owner);
    if (next === undefined) return;
    owner = next.owner;
    const row = db.one<TaskRow>(NEXT_OF, aside, owner, place, ids);
    if (row === undefined) continue;
    const running = db.one<{ count: number }>(RUNNING_OF, owner)?.count ?? 0;
    yield { row, running, served: db.one<{ served: number }>(SERVED, owner)?.served ?? 0 };
  }
}

export function claimTask(tx: Tx, request: TaskClaimRequest): TaskClaim | null {
  const { db, monotonic } = tx;
  const expired = db.all<TaskRow>(EXPIRED, notOurs(request), monotonic);
  writer(giveBack)(tx, expired, 'The lease of its runner expired.');
  const found = claimableTask(db, request, monotonic);
  return found === null || found === 'expired' ? null : writer(takeTask)(tx, found, request);
}
