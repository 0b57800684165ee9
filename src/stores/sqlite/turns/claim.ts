import { ThroughlineError } from '../../../core/errors.ts';
import type { Turn } from '../../../core/turn/turn.ts';
import type { Claim, ClaimRequest, Fence, NextClaim } from '../../../ports/store/leases.ts';
import { conversationRow } from '../conversations/conversations.ts';
import { Ledger, leaseUnder } from '../conversations/ledger.ts';
import { conversationOf, TURN, type TurnRow, turnOf } from '../conversations/rows.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { dropIdleWorker, registerWorker } from './leases.ts';
import { withdrawOpen } from './permissions.ts';
import { endLiving } from './sessions.ts';

/*
 * Turns of a conversation run one after another. So only its oldest open turn can be running; all others are queued.
 */
const NEXT_AGENT = '(SELECT t.agent FROM turns t WHERE t.conv = l.conv AND t.ended_at IS NULL ORDER BY t.n LIMIT 1)';
const NEXT_STATE = NEXT_AGENT.replace('t.agent', 't.state');
const KNOWN_AGENT = `${NEXT_AGENT} IN (SELECT value FROM json_each(?))`;
const READY = `
  SELECT l.conv, l.owner, c.id AS conversation FROM leases l JOIN conversations c ON c.no = l.conv
  WHERE l.driver = ? AND l.pending > 0 AND l.ready_at <= ? AND l.place IN (?, 'any') AND ${KNOWN_AGENT}
    AND c.id NOT IN (SELECT value FROM json_each(?))`;
const READY_OF = `${READY} AND l.owner = ? ORDER BY l.ready_at LIMIT 1`;
const LEFT = `${READY} AND ${NEXT_STATE} <> 'queued' LIMIT 1`;
const NEXT_OWNER = `
  SELECT owner FROM leases WHERE driver = ? AND pending > 0 AND owner > ? AND owner <= ? ORDER BY owner LIMIT 1`;
const NAMED = `
  SELECT l.conv FROM leases l JOIN conversations c ON c.no = l.conv
  WHERE c.id = ? AND l.driver = ? AND (l.ready_at IS NULL OR l.ready_at <= ?) AND l.place IN (?, 'any')
    AND (l.pending = 0 OR ${KNOWN_AGENT})`;
const OLDEST_OPEN = `${TURN} WHERE t.conv = ? AND t.ended_at IS NULL ORDER BY t.n LIMIT 1`;
const REQUEUE = "UPDATE turns SET state = 'queued', started_at = NULL WHERE no = ?";
const BEGIN = "UPDATE turns SET state = 'running', attempt = ?, started_at = ? WHERE no = ?";

/** The conversation to claim. Reads only: workers ask this often, and must not lock anything. */
export function claimable(db: Database, request: ClaimRequest, monotonic: number): number | null {
  const { driver, place, conversation, settle = false } = request;
  if (conversation === undefined) {
    const found = settle ? db.one<ReadyRow>(LEFT, ...readiness(request, monotonic)) : nextReady(db, request, monotonic);
    return found?.conv ?? null;
  }
  const agents = JSON.stringify(request.agents);
  return db.one<{ conv: number }>(NAMED, conversation, driver, monotonic, place, agents)?.conv ?? null;
}

interface ReadyRow extends NextClaim {
  readonly conv: number;
}

function readiness({ driver, place, agents, idleMs = 0, held = [] }: ClaimRequest, monotonic: number) {
  return [driver, monotonic - idleMs, place, JSON.stringify(agents), JSON.stringify(held)] as const;
}

/**
 * The conversation of the fairest owner that has been ready longest. Asks once for every owner with open turns of whom none is
 * ready: those are running, so there are few, however many are queued.
 */
export function nextReady(db: Database, request: ClaimRequest, monotonic: number): ReadyRow | null {
  const ready = readiness(request, monotonic);
  for (const owner of ownersInTurn(db, request)) {
    const found = db.one<ReadyRow>(READY_OF, ...ready, owner);
    if (found !== undefined) return found;
  }
  return null;
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

export function claim(tx: Tx, request: ClaimRequest): Claim | null {
  const conv = claimable(tx.db, request, tx.monotonic);
  if (conv === null) return null;
  const ledger = Ledger.byNo(tx, conv);
  const { row } = ledger;
  const before = row.worker;
  row.epoch += 1;
  row.worker = registerWorker(tx, request.worker);
  row.ready_at = tx.monotonic + request.leaseMs;
  const oldest = tx.db.one<TurnRow>(OLDEST_OPEN, conv);
  const sent = oldest !== undefined && oldest.state !== 'queued' && oldest.sent !== null;
  if (oldest !== undefined && oldest.state !== 'queued') withdrawOpen(ledger, oldest, 'The worker that asked is gone.');
  endLiving(ledger);
  const next = oldest === undefined || sent ? null : requeue(ledger, oldest);
  const begun = next === null || request.settle ? null : beginTurn(ledger, next);
  ledger.save();
  if (before !== null && before !== row.worker) dropIdleWorker(tx.db, before);
  return {
    fence: { conversation: row.id, owner: row.owner, epoch: row.epoch },
    conversation: conversationOf(conversationRow(tx.db, row.owner, row.id)),
    turn: begun,
    unfinished: sent ? { ...turnOf(tx.db, oldest), state: 'running' } : null,
  };
}

/** Its worker ended before anything was sent: the turn is queued again. */
function requeue(ledger: Ledger, turn: TurnRow): TurnRow {
  if (turn.state === 'queued') return turn;
  ledger.tx.db.run(REQUEUE, turn.no);
  ledger.append('turn.requeued', turn, { n: turn.n, attempt: turn.attempt });
  return turn;
}

function beginTurn(ledger: Ledger, turn: TurnRow): Turn {
  const { db, now } = ledger.tx;
  const attempt = turn.attempt + 1;
  db.run(BEGIN, attempt, now, turn.no);
  ledger.append('turn.started', turn, { n: turn.n, attempt });
  return { ...turnOf(db, turn), state: 'running', attempt, startedAt: now };
}

/** Whether `begin` would find a turn, read only. Throws `lease_lost`. */
export function beginnable(db: Database, fence: Fence, agents: readonly string[]): TurnRow | null {
  return oldestOpen(db, leaseUnder(db, fence).conv, agents);
}

function oldestOpen(db: Database, conv: number, agents: readonly string[]): TurnRow | null {
  const oldest = db.one<TurnRow>(OLDEST_OPEN, conv);
  return oldest === undefined || !agents.includes(oldest.agent) ? null : oldest;
}

export function begin(tx: Tx, fence: Fence, agents: readonly string[]): Turn | null {
  const ledger = Ledger.under(tx, fence);
  const oldest = oldestOpen(tx.db, ledger.row.conv, agents);
  if (oldest === null) return null;
  if (oldest.sent !== null && oldest.state !== 'queued') {
    throw new ThroughlineError('conflict', `Turn ${oldest.n} has not ended.`);
  }
  // Begun under this lease and not sent: the reply to an earlier call was lost, so it is given again.
  if (oldest.state !== 'queued') return turnOf(tx.db, oldest);
  const turn = beginTurn(ledger, oldest);
  ledger.save();
  return turn;
}
