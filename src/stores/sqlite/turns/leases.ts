import type { Standing } from '../../../core/turn/standing.ts';
import type { Fence, Holding, WorkerInfo } from '../../../ports/store/leases.ts';
import { type HoldingRow, holdingOf, type StandingRow, standingOf } from '../../shared/totals.ts';
import { STANDING } from '../../shared/verbs/places.ts';
import { endLiving } from '../../shared/writing/sessions.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { carryOut } from '../steps.ts';

const RENEW = `
  UPDATE leases SET ready_at = ?
  WHERE conv = (SELECT no FROM conversations WHERE id = ? AND owner = ?) AND epoch = ? AND worker IS NOT NULL`;
const HELD = `
  SELECT l.conv, l.worker,
    EXISTS (SELECT 1 FROM sessions s WHERE s.conv = l.conv AND s.state = 'live') AS living FROM leases l
  WHERE l.conv = (SELECT no FROM conversations WHERE id = ? AND owner = ?) AND l.epoch = ? AND l.worker IS NOT NULL`;
const RELEASE = 'UPDATE leases SET worker = NULL, ready_at = CASE WHEN pending > 0 THEN ? END WHERE conv = ?';
const WORKERS = 'SELECT id, process FROM workers WHERE no IN (SELECT worker FROM leases WHERE worker IS NOT NULL)';
const HOLDINGS = `
  SELECT c.id AS conversation, c.key, c.title, w.process, l.ready_at, l.pending AS open,
    (SELECT json_group_array(json_object('id', s.id, 'agent', s.agent, 'openedAt', s.opened_at, 'usedAt', s.used_at))
     FROM sessions s WHERE s.conv = l.conv AND (s.state = 'live' OR s.process IS NOT NULL)) AS sessions
  FROM leases l JOIN workers w ON w.no = l.worker JOIN conversations c ON c.no = l.conv
  WHERE l.worker IS NOT NULL AND l.owner = ? ORDER BY l.worker, l.conv LIMIT ?`;
const STILL_LISTED = `
  SELECT 1 FROM workers w
  WHERE w.no = ? AND (w.takes IS NOT NULL OR EXISTS (SELECT 1 FROM leases l WHERE l.worker = w.no))`;
const REGISTER = `
  INSERT INTO workers (owner, id, process) VALUES ('', ?, ?)
  ON CONFLICT (id) DO UPDATE SET process = excluded.process RETURNING no`;
const DELETE_WORKER = 'DELETE FROM workers WHERE no = ?';
/** The plus: by their ids, and not by reading all of the owner's. */
const STANDINGS = `
  ${STANDING} WHERE c.id IN (SELECT value FROM json_each(?)) AND +c.owner = ? AND l.pending > 0 ORDER BY l.conv`;

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
  const held = tx.db.one<{ conv: number; worker: number; living: number }>(HELD, conversation, owner, epoch);
  if (held === undefined) return;
  if (held.living) {
    const ledger = Ledger.byNo(tx, held.conv);
    carryOut(tx.db, endLiving(ledger));
    ledger.save();
  }
  tx.db.run(RELEASE, tx.monotonic, held.conv);
  dropIdleWorker(tx.db, held.worker);
  tx.moved(conversation, null);
}

export function workers(db: Database): WorkerInfo[] {
  const rows = db.all<{ id: string; process: string }>(WORKERS);
  return rows.map(({ id, process }) => ({ id, process: JSON.parse(process) }));
}

/** A worker is listed while it holds a lease; one that takes up turns, until it is forgotten. */
export function dropIdleWorker(db: Database, worker: number): void {
  if (db.one(STILL_LISTED, worker) === undefined) db.run(DELETE_WORKER, worker);
}

export function holdings(db: Database, owner: string, limit: number, monotonic: number): Holding[] {
  return db.all<HoldingRow>(HOLDINGS, owner, limit).map((row) => holdingOf(row, monotonic));
}

export function standings(db: Database, owner: string, ids: readonly string[], monotonic: number): Standing[] {
  return db.all<StandingRow>(STANDINGS, JSON.stringify(ids), owner).map((row) => standingOf(row, monotonic));
}
