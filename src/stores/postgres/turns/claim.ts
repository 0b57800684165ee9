import { DamagedRows, isDamage } from '../../../core/errors.ts';
import type { Claim, ClaimRequest, NextClaim, NextLimits } from '../../../ports/store/leases.ts';
import { take } from '../../shared/writing/claim.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Tx } from '../server/access.ts';
import { type Sql, TxSql, type Value } from '../server/connect.ts';
import { storageFault } from '../server/faults.ts';
import { changing } from './changing.ts';

/*
 * A claim looks for a conversation without locking anything, locks it unless another transaction has it, and looks again whether it may
 * be claimed: another worker may have been faster. Then it tries the next one.
 */
const NEXT = (column: string) =>
  `(SELECT t.${column} FROM turns t WHERE t.conv = l.conv AND t.ended_at IS NULL ORDER BY t.n LIMIT 1)`;
const KNOWN_AGENT = `${NEXT('agent')} = ANY($4::text[])`;
/** Of the statement, so that an index can be used. */
const DATABASE_TIME = 'extract(epoch FROM statement_timestamp())::float8 * 1000';
const READY = `
  SELECT l.conv, l.owner, c.id AS conversation FROM leases l JOIN conversations c ON c.no = l.conv
  WHERE l.driver = $1 AND l.pending > 0 AND l.ready_at <= coalesce($2, ${DATABASE_TIME} - $6) AND l.place IN ($3, 'any') AND ${KNOWN_AGENT}
    AND c.id <> ALL($5::text[])`;
const LEFT = `${READY} AND ${NEXT('state')} <> 'queued' ORDER BY l.ready_at, l.conv LIMIT 1`;
const STILL_READY = `${READY} AND l.conv = $7`;
/** The owners who have open turns after an owner, one after the other by the index. */
const ownersAfter = (owner: string, upTo: string) => `(
  WITH RECURSIVE o (owner) AS (
    SELECT ${owner}::text COLLATE "C" UNION ALL
    SELECT (SELECT w.owner FROM leases w WHERE w.driver = $1 AND w.pending > 0 AND w.owner > o.owner ${upTo} ORDER BY w.owner LIMIT 1)
    FROM o WHERE o.owner IS NOT NULL
  ) SELECT owner FROM o WHERE owner > ${owner} AND owner <> ALL($8::text[]))`;
/**
 * The conversations of the fairest owners that have been ready longest. Looks once for every owner with open turns of whom none is ready: those are
 * running, so there are few, however many are queued. The statement stops at what it has found.
 */
const NEXT_READY = `
  SELECT r.conv, r.owner, r.conversation FROM (
    SELECT owner FROM ${ownersAfter('$7', '')} a
    UNION ALL SELECT owner FROM ${ownersAfter("''", 'AND w.owner <= $7')} b
    UNION ALL SELECT owner FROM unnest($9::text[]) AS c (owner)
  ) o, LATERAL (${READY} AND l.owner = o.owner ORDER BY l.ready_at, l.conv LIMIT $10::int) r LIMIT $11::int`;
const WAITING = `
  SELECT l.conv, c.id FROM leases l JOIN conversations c ON c.no = l.conv
  WHERE l.driver = $1 AND l.pending > 0 AND l.ready_at <= coalesce($2, ${DATABASE_TIME}) ORDER BY l.ready_at LIMIT 1000`;
const NAMED = `
  SELECT l.conv, l.owner, c.id AS conversation FROM leases l JOIN conversations c ON c.no = l.conv
  WHERE c.id = $5 AND l.driver = $1 AND (l.ready_at IS NULL OR l.ready_at <= $2) AND l.place IN ($3, 'any')
    AND (l.pending = 0 OR ${KNOWN_AGENT})`;

interface ReadyRow extends NextClaim {
  readonly conv: number;
}

/** The conversation to claim. Reads only: workers ask this often, and must not lock anything. */
export async function claimable(sql: Sql, request: ClaimRequest, monotonic: number): Promise<ReadyRow | null> {
  const { driver, place, agents, conversation, withoutTurn = false } = request;
  if (conversation !== undefined) {
    return (await sql.one<ReadyRow>(NAMED, driver, monotonic, place, agents, conversation)) ?? null;
  }
  if (!withoutTurn) return (await nextReady(sql, request, monotonic, ONE))[0] ?? null;
  return naming(sql, request, monotonic, async () => {
    return (await sql.one<ReadyRow>(LEFT, ...readiness(request, monotonic))) ?? null;
  });
}

/**
 * Runs a read of all that waits. When it meets a damaged page, throws `DamagedRows`, which names the conversation. Not inside a transaction: there
 * nothing can be read after a fault.
 */
async function naming<T>(
  sql: Sql,
  request: ClaimRequest,
  monotonic: number | null,
  look: () => Promise<T>,
): Promise<T> {
  try {
    return await look();
  } catch (error) {
    const fault = storageFault(error);
    if (!isDamage(fault) || sql instanceof TxSql) throw error;
    const { driver, held = [] } = request;
    for (const { conv, id } of await sql.all<{ conv: number; id: string }>(WAITING, driver, monotonic)) {
      if (held.includes(id)) continue;
      await sql.one(STILL_READY, ...readiness(request, monotonic), conv).catch((one: unknown) => {
        throw isDamage(storageFault(one)) ? new DamagedRows(id, fault) : one;
      });
    }
    throw error;
  }
}

function readiness({ driver, place, agents, idleMs = 0, held = [] }: ClaimRequest, monotonic: number | null): Value[] {
  return [driver, monotonic === null ? null : monotonic - idleMs, place, agents, held, idleMs];
}

const ONE: NextLimits = { perOwner: 1, all: 1 };

/** `monotonic` null: the time of the database. */
export function nextReady(
  sql: Sql,
  request: ClaimRequest,
  monotonic: number | null,
  { perOwner, all }: NextLimits,
): Promise<ReadyRow[]> {
  const { after = '', busy = [], full = [] } = request.share ?? {};
  const owners = [after, [...busy, ...full], busy];
  return naming(sql, request, monotonic, () => {
    return sql.all<ReadyRow>(NEXT_READY, ...readiness(request, monotonic), ...owners, perOwner, all);
  });
}

export async function claim(tx: Tx, request: ClaimRequest): Promise<Claim | null> {
  const passed = [...(request.held ?? [])];
  for (;;) {
    const asked = { ...request, held: passed };
    const found = await claimable(tx.sql, asked, tx.monotonic);
    if (found === null) return null;
    const ledger = await Ledger.unlessLocked(tx, found.conv);
    const isReady =
      ledger !== null && (await tx.sql.one(STILL_READY, ...readiness(asked, tx.monotonic), found.conv)) !== undefined;
    if (isReady) return orDamaged(found.conversation, () => changing(take)(tx, ledger, request));
    passed.push(found.conversation);
  }
}

/** Waits for another transaction: somebody waits for this conversation. */
export async function claimNamed(tx: Tx, conversation: string, request: ClaimRequest): Promise<Claim | null> {
  const ledger = await Ledger.find(tx, conversation);
  // Looked at when it is locked: another worker may have been faster.
  if (ledger === null || (await claimable(tx.sql, request, tx.monotonic)) === null) return null;
  return orDamaged(conversation, () => changing(take)(tx, ledger, request));
}

async function orDamaged<T>(conversation: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const fault = storageFault(error);
    throw isDamage(fault) ? new DamagedRows(conversation, fault) : error;
  }
}
