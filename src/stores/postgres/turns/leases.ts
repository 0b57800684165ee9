import { ThroughlineError } from '../../../core/errors.ts';
import type { Standing } from '../../../core/turn/standing.ts';
import type { Fence, Holding, LeasedWorker, WorkerInfo } from '../../../ports/store/leases.ts';
import { type HoldingRow, holdingOf, type StandingRow, standingOf } from '../../shared/totals.ts';
import { STANDING } from '../../shared/verbs/places.ts';
import { unindexed } from '../../shared/verbs/steps.ts';
import { endLiving } from '../../shared/writing/sessions.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Access, Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { isLockedOut } from '../server/faults.ts';
import { carryOut } from '../steps.ts';

/** All in one statement and in a fixed order, so that two renewals do not deadlock. `busy`: what to do about those that are locked. */
const renewal = (busy: string) => `
  WITH wanted AS (
    SELECT l.conv, f.place FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS f (id, owner, epoch, place)
      JOIN conversations c ON c.id = f.id AND ${unindexed('c.owner')} = f.owner
      JOIN leases l ON l.conv = c.no AND l.epoch = f.epoch AND l.worker IS NOT NULL
    ORDER BY l.conv FOR NO KEY UPDATE OF l ${busy}
  ) UPDATE leases l SET ready_at = $1 FROM wanted w WHERE l.conv = w.conv RETURNING w.place::int AS place`;
const RENEW_FREE = renewal('SKIP LOCKED');
const RENEW = renewal('');
const HELD = `
  SELECT l.conv, l.worker, (SELECT w.takes IS NULL FROM workers w WHERE w.no = l.worker) AS leaves,
    EXISTS (SELECT 1 FROM sessions s WHERE s.conv = l.conv AND s.state = 'live') AS living
  FROM leases l JOIN conversations c ON c.no = l.conv
  WHERE c.id = $1 AND ${unindexed('c.owner')} = $2 AND l.epoch = $3 AND l.worker IS NOT NULL FOR NO KEY UPDATE OF l`;
const HELD_UNLESS_LOCKED = `${HELD} SKIP LOCKED`;
const RELEASE = 'UPDATE leases SET worker = NULL, ready_at = CASE WHEN pending > 0 THEN $1::float8 END WHERE conv = $2';
const WORKERS = `
  SELECT w.id, w.process, (h.ends - extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "leftMs"
  FROM (SELECT worker, min(ready_at) FILTER (WHERE pending > 0) AS ends FROM leases WHERE worker IS NOT NULL GROUP BY worker) h
    JOIN workers w ON w.no = h.worker ORDER BY w.no`;
const HOLDINGS = `
  SELECT c.id AS conversation, c.key, c.title, w.process, l.ready_at, l.pending AS open,
    (SELECT coalesce(json_agg(json_build_object(
       'id', s.id, 'agent', s.agent, 'openedAt', s.opened_at, 'usedAt', s.used_at) ORDER BY s.no), '[]')::text
     FROM sessions s WHERE s.conv = l.conv AND (s.state = 'live' OR s.process IS NOT NULL)) AS sessions
  FROM leases l JOIN workers w ON w.no = l.worker JOIN conversations c ON c.no = l.conv
  WHERE l.worker IS NOT NULL AND l.owner = $1 ORDER BY l.worker, l.conv LIMIT $2`;
const WORKER = 'SELECT no, process FROM workers WHERE id = $1';
const REGISTER = `
  INSERT INTO workers (owner, id, process) VALUES ('', $1, $2)
  ON CONFLICT (id) DO UPDATE SET process = excluded.process RETURNING no`;
// Locked first, so that the next statement sees the leases of a claim that has just been committed.
const LOCK_WORKER = 'SELECT 1 FROM workers WHERE no = $1 FOR UPDATE';
const DROP_IDLE = `
  DELETE FROM workers WHERE no = $1 AND takes IS NULL AND NOT EXISTS (SELECT 1 FROM leases WHERE worker = $1)`;
const STANDINGS = `${STANDING} WHERE c.id = ANY($1::text[]) AND ${unindexed('c.owner')} = $2 AND l.pending + 0 > 0 ORDER BY l.conv`;

export async function registerWorker(tx: Tx, worker: WorkerInfo): Promise<number> {
  const process = JSON.stringify(worker.process);
  // Mostly it is registered. If it is removed at this moment, the lease cannot name it, and the transaction begins again.
  const known = await tx.sql.one<{ no: number; process: string }>(WORKER, worker.id);
  if (known?.process === process) return known.no;
  tx.alone();
  return (await tx.sql.one<{ no: number }>(REGISTER, worker.id, process))?.no as number;
}

/**
 * An expired lease that nobody has taken can be renewed. Most are free and renewed at once; the rest follows in another transaction, so
 * that the others do not stay locked until the last one is free. One that stays locked is not lost: the next heartbeat tries again.
 * On a connection that gives no answer it fails early enough for a second try on another one before the leases end.
 */
export async function renew(access: Access, fences: readonly Fence[], leaseMs: number): Promise<Fence[]> {
  const waits = { answerMs: Math.max(1_000, leaseMs / 4), lockMs: Math.max(500, leaseMs / 5) };
  const rest = await access.write((tx) => renewed(tx, fences, leaseMs, RENEW_FREE), waits);
  if (rest.length === 0) return [];
  try {
    return await access.write((tx) => renewed(tx, rest, leaseMs, RENEW), waits);
  } catch (error) {
    if (error instanceof ThroughlineError && isLockedOut(error)) return [];
    throw error;
  }
}

/** Returns those that were not renewed. */
async function renewed(tx: Tx, fences: readonly Fence[], leaseMs: number, text: string): Promise<Fence[]> {
  if (fences.length === 0) return [];
  const [ids, owners, epochs] = [
    fences.map(({ conversation }) => conversation),
    fences.map(({ owner }) => owner),
    fences.map(({ epoch }) => epoch),
  ];
  const rows = await tx.sql.all<{ place: number }>(text, tx.monotonic + leaseMs, ids, owners, epochs);
  const places = new Set(rows.map(({ place }) => place - 1));
  return fences.filter((_, index) => !places.has(index));
}

/** Decided by the row's own count of open turns: a query of the turns could miss one that is being added. */
export async function release(tx: Tx, { conversation, owner, epoch }: Fence): Promise<void> {
  type Found = { conv: number; worker: number; living: boolean; leaves: boolean };
  const held = await tx.sql.one<Found>(tx.isShared ? HELD_UNLESS_LOCKED : HELD, conversation, owner, epoch);
  // Another transaction has it, or it is not held.
  if (held === undefined) return tx.alone();
  if (held.living) {
    tx.alone();
    const ledger = await Ledger.byNo(tx, held.conv);
    await carryOut(tx.sql, endLiving(ledger));
    await ledger.save();
  }
  tx.sql.run(RELEASE, tx.monotonic, held.conv);
  if (held.leaves) dropIdleWorker(tx, held.worker);
  tx.moved(conversation);
}

export async function workers(sql: Sql): Promise<LeasedWorker[]> {
  const rows = await sql.all<{ id: string; process: string; leftMs: number | null }>(WORKERS);
  return rows.map(({ id, process, leftMs }) => ({
    id,
    process: JSON.parse(process),
    ...(leftMs !== null && { leftMs }),
  }));
}

/** A worker is listed while it holds a lease; one that takes up turns, until it is forgotten. */
export function dropIdleWorker(tx: Tx, worker: number): void {
  tx.last({
    text: DROP_IDLE,
    lock: LOCK_WORKER,
    key: [String(worker)],
    amount: null,
    add: () => null,
    values: () => [],
  });
}

export async function holdings(sql: Sql, owner: string, limit: number, monotonic: number): Promise<Holding[]> {
  return (await sql.all<HoldingRow>(HOLDINGS, owner, limit)).map((row) => holdingOf(row, monotonic));
}

export async function standings(
  sql: Sql,
  owner: string,
  ids: readonly string[],
  monotonic: number,
): Promise<Standing[]> {
  return (await sql.all<StandingRow>(STANDINGS, ids, owner)).map((row) => standingOf(row, monotonic));
}
