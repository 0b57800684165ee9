import { DamagedRows, isDamage } from '../../../core/errors.ts';
import type { Claim, ClaimRequest, NextClaim, NextLimits } from '../../../ports/store/leases.ts';
import type { LeaseRow } from '../../shared/ledger.ts';
import { TURN, type TurnRow, turnOf } from '../../shared/rows.ts';
import { LIMIT } from '../../shared/verbs/steps.ts';
import { take } from '../../shared/writing/claim.ts';
import { conversationRow } from '../conversations/conversations.ts';
import { LEASE_BY_NO, Ledger } from '../conversations/ledger.ts';
import type { Database } from '../file/database.ts';
import { storageFault } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';
import { changing } from './changing.ts';

const NEXT_AGENT = '(SELECT t.agent FROM turns t WHERE t.conv = l.conv AND t.ended_at IS NULL ORDER BY t.n LIMIT 1)';
const NEXT_STATE = NEXT_AGENT.replace('t.agent', 't.state');
const KNOWN_AGENT = `${NEXT_AGENT} IN (SELECT value FROM json_each(?))`;
const READY = `
  SELECT l.conv, l.owner, c.id AS conversation FROM leases l JOIN conversations c ON c.no = l.conv
  WHERE l.driver = ? AND l.pending > 0 AND l.ready_at <= ?
    -- In this order: the rows of a conversation that is set aside may be damaged, and must not be read.
    AND CASE WHEN l.conv IN (SELECT no FROM conversations WHERE id IN (SELECT value FROM json_each(?))) THEN 0
        ELSE l.place IN (?, 'any') AND ${KNOWN_AGENT} END`;
const READY_OF = `${READY} AND l.owner = ? ORDER BY l.ready_at ${LIMIT}`;
const LEFT = `${READY.replace(/END$/, `AND ${NEXT_STATE} <> 'queued' END`)} LIMIT 1`;
const NEXT_OWNER = `
  SELECT owner FROM leases WHERE driver = ? AND pending > 0 AND owner > ? AND owner <= ? ORDER BY owner LIMIT 1`;
/** Read from indexes alone, which are other pages than those of the rows. */
const WAITING = 'SELECT conv FROM leases WHERE driver = ? AND pending > 0 AND ready_at <= ?';
const ID_OF = 'SELECT id FROM conversations INDEXED BY sqlite_autoindex_conversations_1 WHERE no = ?';
const NAMED = `
  SELECT l.conv FROM leases l JOIN conversations c ON c.no = l.conv
  WHERE c.id = ? AND l.driver = ? AND (l.ready_at IS NULL OR l.ready_at <= ?) AND l.place IN (?, 'any')
    AND (l.pending = 0 OR ${KNOWN_AGENT})`;
const OLDEST_OPEN = `${TURN} WHERE t.conv = ? AND t.ended_at IS NULL ORDER BY t.n LIMIT 1`;

/** The conversation to claim. Reads only: workers ask this often, and must not lock anything. */
export function claimable(db: Database, request: ClaimRequest, monotonic: number): number | null {
  const { driver, place, conversation, withoutTurn = false } = request;
  if (conversation === undefined) {
    const left = () => db.one<ReadyRow>(LEFT, ...readiness(request, monotonic));
    const found = withoutTurn ? naming(db, request, monotonic, left) : nextReady(db, request, monotonic, ONE)[0];
    return found?.conv ?? null;
  }
  const agents = JSON.stringify(request.agents);
  return db.one<{ conv: number }>(NAMED, conversation, driver, monotonic, place, agents)?.conv ?? null;
}

interface ReadyRow extends NextClaim {
  readonly conv: number;
}

function readiness({ driver, place, agents, idleMs = 0, held = [] }: ClaimRequest, monotonic: number) {
  return [driver, monotonic - idleMs, JSON.stringify(held), place, JSON.stringify(agents)] as const;
}

const ONE: NextLimits = { perOwner: 1, all: 1 };

/**
 * The conversations of the fairest owners that have been ready longest. Asks once for every owner who has one, and for every owner with open
 * turns of whom none is ready: those are running, so there are few, however many are queued.
 */
export function nextReady(db: Database, request: ClaimRequest, monotonic: number, most: NextLimits): ReadyRow[] {
  const ready = readiness(request, monotonic);
  return naming(db, request, monotonic, () => {
    const found: ReadyRow[] = [];
    for (const owner of ownersInTurn(db, request)) {
      found.push(...db.all<ReadyRow>(READY_OF, ...ready, owner, Math.min(most.perOwner, most.all - found.length)));
      if (found.length >= most.all) break;
    }
    return found;
  });
}

/** For SQLite, a blob is greater than every text. */
const LAST = new Uint8Array();

function* ownersInTurn(db: Database, { driver, share }: ClaimRequest): Generator<string> {
  const { after = '', busy = [], full = [] } = share ?? {};
  const named = new Set([...busy, ...full]);
  for (const [from, to] of [
    [after, LAST],
    ['', after],
  ] as const) {
    for (let owner = from; ; ) {
      const next = db.one<{ owner: string }>(NEXT_OWNER, driver, owner, to);
      if (next === undefined) break;
      owner = next.owner;
      if (!named.has(owner)) yield owner;
    }
  }
  yield* busy;
}

/** Runs a read of all that waits. When it meets a damaged page, throws `DamagedRows`, which names the conversation. */
function naming<T>(db: Database, { driver, held = [] }: ClaimRequest, monotonic: number, look: () => T): T {
  try {
    return look();
  } catch (error) {
    if (!isDamage(storageFault(error))) throw error;
    for (const { conv } of db.all<{ conv: number }>(WAITING, driver, monotonic)) {
      const id = db.one<{ id: string }>(ID_OF, conv)?.id ?? '';
      if (!held.includes(id)) orDamaged(db, conv, () => readWhole(db, conv));
    }
    throw error;
  }
}

/** What a claim reads. */
function readWhole(db: Database, conv: number): void {
  const row = db.one<LeaseRow>(LEASE_BY_NO, conv);
  if (row !== undefined) conversationRow(db, row.owner, row.id);
  const oldest = db.one<TurnRow>(OLDEST_OPEN, conv);
  if (oldest !== undefined) turnOf(db, oldest);
}

function orDamaged<T>(db: Database, conv: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const fault = storageFault(error);
    const id = isDamage(fault) ? db.one<{ id: string }>(ID_OF, conv)?.id : undefined;
    throw isDamage(fault) && id !== undefined ? new DamagedRows(id, fault) : error;
  }
}

export function claim(tx: Tx, request: ClaimRequest): Claim | null {
  const conv = claimable(tx.db, request, tx.monotonic);
  if (conv === null) return null;
  return orDamaged(tx.db, conv, () => changing(take)(tx, Ledger.byNo(tx, conv), request));
}
