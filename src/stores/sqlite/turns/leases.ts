import type { ProcessIdentity } from '../../../core/process.ts';
import type { Fence, WorkerInfo } from '../../../ports/store/leases.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { expireTasks } from '../tasks/task-claim.ts';

const BOOT = "SELECT value FROM facts WHERE owner = '' AND name = 'boot'";
const SET_BOOT = `
  INSERT INTO facts (owner, name, value) VALUES ('', 'boot', ?) ON CONFLICT (owner, name) DO UPDATE SET value = excluded.value`;
const LATEST = 'SELECT max(ready_at) AS at FROM leases WHERE ready_at IS NOT NULL';
const FREE_ALL = `
  UPDATE leases SET worker = NULL, ready_at = CASE WHEN pending > 0 THEN ready_at - ? + ? END WHERE ready_at IS NOT NULL`;
const FORGET_ALL = 'DELETE FROM workers';
const RENEW = `
  UPDATE leases SET ready_at = ?
  WHERE conv = (SELECT no FROM conversations WHERE id = ? AND owner = ?) AND epoch = ? AND worker IS NOT NULL`;
const HELD = `
  SELECT conv, worker FROM leases
  WHERE conv = (SELECT no FROM conversations WHERE id = ? AND owner = ?) AND epoch = ? AND worker IS NOT NULL`;
const RELEASE = 'UPDATE leases SET worker = NULL, ready_at = CASE WHEN pending > 0 THEN ? END WHERE conv = ?';
const WORKER = 'SELECT no FROM workers WHERE id = ?';
const WORKERS = 'SELECT id, process FROM workers WHERE no IN (SELECT worker FROM leases WHERE worker IS NOT NULL)';
const PROCESSES = `
  WITH held AS (SELECT l.conv FROM leases l JOIN workers w ON w.no = l.worker WHERE w.id = ?)
  SELECT s.process FROM held JOIN sessions s ON s.conv = held.conv WHERE s.process IS NOT NULL
  UNION
  SELECT t.sent ->> '$.process' FROM held JOIN turns t ON t.conv = held.conv
  WHERE t.ended_at IS NULL AND t.sent ->> '$.process' IS NOT NULL`;
const HELD_BY = 'SELECT l.conv, c.id FROM leases l JOIN conversations c ON c.no = l.conv WHERE l.worker = ?';
const STILL_HOLDS = 'SELECT 1 FROM leases WHERE worker = ? LIMIT 1';
const REGISTER = `
  INSERT INTO workers (owner, id, process) VALUES ('', ?, ?)
  ON CONFLICT (id) DO UPDATE SET process = excluded.process RETURNING no`;
const DELETE_WORKER = 'DELETE FROM workers WHERE no = ?';

/**
 * Lease times are monotonic times of one boot. After a reboot every holder is dead and the times mean nothing. Conversations with
 * open turns become claimable, in the same order.
 */
export function adoptBoot(db: Database, boot: string, monotonic: number): void {
  if (db.one<{ value: string }>(BOOT)?.value === boot) return;
  const latest = db.one<{ at: number | null }>(LATEST)?.at ?? 0;
  db.run(FREE_ALL, latest, monotonic);
  db.run(FORGET_ALL);
  expireTasks(db);
  db.run(SET_BOOT, boot);
}

export function registerWorker(tx: Tx, worker: WorkerInfo): number {
  return tx.db.one<{ no: number }>(REGISTER, worker.id, JSON.stringify(worker.process))?.no as number;
}

/** An expired lease that nobody has taken can be renewed. */
export function renew(tx: Tx, fences: readonly Fence[], leaseMs: number): Fence[] {
  const until = tx.monotonic + leaseMs;
  return fences.filter(({ conversation, owner, epoch }) => {
    return tx.db.run(RENEW, until, conversation, owner, epoch).changes === 0;
  });
}

/** Decided by the row's own count of open turns: a query of the turns could miss one that is being added. */
export function release(tx: Tx, { conversation, owner, epoch }: Fence): void {
  const held = tx.db.one<{ conv: number; worker: number }>(HELD, conversation, owner, epoch);
  if (held === undefined) return;
  tx.db.run(RELEASE, tx.monotonic, held.conv);
  dropIdleWorker(tx.db, held.worker);
  tx.moved(conversation, null);
}

export function workers(db: Database): WorkerInfo[] {
  const rows = db.all<{ id: string; process: string }>(WORKERS);
  return rows.map(({ id, process }) => ({ id, process: JSON.parse(process) }));
}

export function processesOf(db: Database, worker: string): ProcessIdentity[] {
  return db.all<{ process: string }>(PROCESSES, worker).map(({ process }) => JSON.parse(process));
}

export function forgetWorker(tx: Tx, worker: string): void {
  const row = tx.db.one<{ no: number }>(WORKER, worker);
  if (row === undefined) return;
  for (const { conv, id } of tx.db.all<{ conv: number; id: string }>(HELD_BY, row.no)) {
    tx.db.run(RELEASE, tx.monotonic, conv);
    tx.moved(id, null);
  }
  tx.db.run(DELETE_WORKER, row.no);
}

/** A worker is listed while it holds a lease. */
export function dropIdleWorker(db: Database, worker: number): void {
  if (db.one(STILL_HOLDS, worker) === undefined) db.run(DELETE_WORKER, worker);
}
