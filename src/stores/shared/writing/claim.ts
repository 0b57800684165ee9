import { begun } from '../../../core/turn/turn.ts';
import type { Claim, ClaimRequest, Fence, TurnFacts, TurnToRun } from '../../../ports/store/leases.ts';
import { LEASE, type LeaseRow, underFence } from '../ledger.ts';
import { limitPerDayOf, SESSION, type SessionRow, sessionOf, TURN, type TurnRow } from '../rows.ts';
import { checkMayBegin } from '../turns.ts';
import { lastMovedFrom } from '../verbs/places.ts';
import { readTurn, unknownPartsOf } from '../verbs/reading.ts';
import { openInLease } from '../verbs/sandboxes.ts';
import { act, all, one, run, type Steps, together } from '../verbs/steps.ts';
import { beginTurn } from './commit.ts';
import type { LedgerTx, SharedLedger } from './ledger.ts';
import { withdrawOpen } from './permissions.ts';
import { endLiving } from './sessions.ts';

/*
 * Turns of a conversation run one after another. So only its oldest open turn can be running; all others are queued.
 */
const OLDEST_OPEN = `${TURN} WHERE t.conv = ? AND t.ended_at IS NULL ORDER BY t.n LIMIT 1`;
const OLDEST_OPEN_BY_ID = OLDEST_OPEN.replace('?', '(SELECT no FROM conversations WHERE id = ?)');
const LEASE_BY_ID = `${LEASE} WHERE c.id = ?`;
const REQUEUE = "UPDATE turns SET state = 'queued', started_at = NULL WHERE no = ?";
const LAST_SESSIONS = `
  ${SESSION} WHERE s.conv = ? AND s.agent = ? ORDER BY s.used_seq DESC, s.no DESC LIMIT 20`;

/** Gives a conversation to a worker, which may begin its oldest open turn. */
export function* take(tx: LedgerTx, ledger: SharedLedger, request: ClaimRequest): Steps<Claim> {
  const { row } = ledger;
  const { id, owner, worker: before } = row;
  row.epoch += 1;
  row.ready_at = tx.monotonic + request.leaseMs;
  const [worker, oldest, movedFrom, conversation] = yield* together(
    act(() => tx.registerWorker(request.worker)),
    one<TurnRow>(OLDEST_OPEN, row.conv),
    lastMovedFrom(row),
    act(() => tx.conversation(owner, id)),
  );
  row.worker = worker;
  const sent = oldest !== undefined && oldest.state !== 'queued' && oldest.sent !== null;
  if (oldest !== undefined && oldest.state !== 'queued') {
    yield* withdrawOpen(ledger, oldest, 'The worker that asked is gone.');
  }
  const ended = yield* endLiving(ledger);
  const next = oldest === undefined || sent ? null : yield* queueAgain(ledger, oldest);
  const isBegun = next !== null && !request.withoutTurn;
  if (isBegun) yield* beginTurn(ledger, next);
  const turn = isBegun ? begun(yield* readTurn(next), tx.now) : null;
  const facts = isBegun ? yield* factsOf(row, next.agent, tx.monotonic, ended) : null;
  yield* act(() => ledger.save());
  if (before !== null && before !== worker) tx.dropIdleWorker(before);
  return {
    fence: { conversation: id, owner, epoch: row.epoch },
    // Only the oldest open turn can ask, and its questions are withdrawn.
    conversation: { ...conversation, state: row.state, lastSeq: row.next_seq - 1, openPermissions: 0 },
    turn,
    facts,
    movedFrom,
    unfinished: sent ? { ...(yield* readTurn(oldest)), state: 'running' } : null,
  };
}

/** Its worker ended before anything was sent: the turn is queued again. */
function* queueAgain(ledger: SharedLedger, turn: TurnRow): Steps<TurnRow> {
  if (turn.state === 'queued') return turn;
  yield* run(REQUEUE, turn.no);
  ledger.restate(null, 'queued');
  ledger.append('turn.requeued', turn, { n: turn.n, attempt: turn.attempt });
  return turn;
}

export function* nextTurn(monotonic: number, fence: Fence, agents: readonly string[]): Steps<TurnToRun | null> {
  const { conversation } = fence;
  // The lease last: if it is held then, nobody else has begun the turn that was read.
  const [oldest, found] = yield* together(
    one<TurnRow>(OLDEST_OPEN_BY_ID, conversation),
    one<LeaseRow>(LEASE_BY_ID, conversation),
  );
  const row = underFence(found, fence);
  if (oldest === undefined || !agents.includes(oldest.agent)) return null;
  checkMayBegin(oldest);
  const [turn, facts] = yield* together(readTurn(oldest), factsOf(row, oldest.agent, monotonic));
  return { turn, facts };
}

/** What the engine needs to run a turn. `ended`: sessions that this transaction makes dormant. */
function* factsOf(row: LeaseRow, agent: string, monotonic: number, ended?: ReadonlySet<number>): Steps<TurnFacts> {
  const [sessions, unknownParts, sandbox] = yield* together(
    all<SessionRow>(LAST_SESSIONS, row.conv, agent),
    unknownPartsOf(row.conv),
    openInLease(row, monotonic),
  );
  const now = sessions.map((session) => (ended?.has(session.no) ? { ...session, state: 'dormant' as const } : session));
  return { limitPerDay: limitPerDayOf(row.limits), sessions: now.map(sessionOf), unknownParts, sandbox };
}
