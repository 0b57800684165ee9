import type { EventPayloads } from '../../../core/event.ts';
import type { Fence } from '../../../ports/store/leases.ts';
import type { Committed, Write } from '../../../ports/store/writes.ts';
import type { Stamp } from '../ledger.ts';
import { TURN, type TurnRow } from '../rows.ts';
import { begunTurn as begun, checkNotSent, checkReceipt, checkWatermarks, noTurn, turnToBegin } from '../turns.ts';
import { act, one, run, type Steps, together, unindexed, unindexedNo } from '../verbs/steps.ts';
import { endTurn } from './end.ts';
import type { BegunTurn, LedgerTx, NumberedTurn, SharedLedger } from './ledger.ts';
import { ask, deny, withdrawOpen } from './permissions.ts';
import { writeReceipt, writeTold, writeToldAhead } from './receipts.ts';
import { changeSession, openSession, useSession } from './sessions.ts';

const LAST_OF = `
  SELECT seq FROM events
  WHERE conv = (SELECT no FROM conversations WHERE id = ?) AND epoch = ? AND counter >= ? AND counter < ?
  ORDER BY counter DESC, part DESC LIMIT 1`;
const TURN_NAME = `
  SELECT no, id, n FROM turns WHERE id = ? AND ${unindexedNo('conv')} = (SELECT no FROM conversations WHERE id = ?)`;
const TURN_ROW = `${TURN} WHERE t.id = ? AND ${unindexedNo('t.conv')} = ?`;
const BEGUN = `SELECT no, id, n, state, agent, attempt, sent FROM turns WHERE id = ? AND ${unindexedNo('conv')} = ?`;
const OLDEST_OPEN =
  'SELECT no, id, n, state, agent, attempt, sent FROM turns WHERE conv = ? AND ended_at IS NULL ORDER BY n LIMIT 1';
/** Of the oldest open turn but the one that ends. */
const NEXT_AGENT = `
  SELECT agent FROM turns WHERE conv = (SELECT no FROM conversations WHERE id = ?) AND ended_at IS NULL AND ${unindexed('id')} <> ?
  ORDER BY n LIMIT 1`;
/** That turn, among what a commit has written. */
const OLDEST = 'oldest open turn';
const BEGIN = "UPDATE turns SET state = 'running', attempt = ?, started_at = ? WHERE no = ?";
const SEND = 'UPDATE turns SET sent = ?, was_sent = 1, session_id = coalesce(?, session_id) WHERE no = ?';
const RETRY = "UPDATE turns SET sent = NULL, attempt = attempt + 1, state = 'running' WHERE no = ?";

/**
 * All writes, in order, or none. Every write has its own counter within the epoch, and its events carry it. If any of these
 * counters was used before, this is a repetition of that commit.
 */
export function* commit(tx: LedgerTx, fence: Fence, counter: number, writes: readonly Write[]): Steps<Committed> {
  const { conversation, epoch } = fence;
  const ends = writes.filter((write) => write.write === 'end');
  const ended = ends.length === 1 ? ends[0]?.turn : undefined;
  const [ledger, repeated, named, next] = yield* together(
    act(() => tx.ledgerUnder(fence)),
    one<{ seq: number }>(LAST_OF, conversation, epoch, counter, counter + writes.length),
    together(...namedTurns(writes).map((id) => one<NumberedTurn>(TURN_NAME, id, conversation))),
    ended === undefined ? act(() => undefined) : one<{ agent: string }>(NEXT_AGENT, conversation, ended),
  );
  const { row } = ledger;
  if (writes.length === 0) return { seq: row.next_seq - 1, open: row.pending };
  // It was made before, and only its reply was lost (R5).
  if (repeated !== undefined) return { ...repeated, open: row.pending };
  for (const turn of named) if (turn !== undefined) ledger.names.set(turn.id, turn);
  for (const [index, write] of writes.entries()) {
    yield* apply(ledger, write, { epoch, counter: counter + index, part: 0 });
  }
  checkWatermarks(row, writes);
  yield* act(() => ledger.save());
  return { seq: row.next_seq - 1, open: row.pending, ...(ended !== undefined && { next: next?.agent ?? null }) };
}

function* apply(ledger: SharedLedger, write: Write, stamp: Stamp): Steps<void> {
  switch (write.write) {
    case 'begin': {
      ledger.reads(OLDEST);
      const oldest = yield* one<BegunTurn>(OLDEST_OPEN, ledger.row.conv);
      yield* beginTurn(ledger, turnToBegin(oldest, write.turn), stamp);
      ledger.writes(OLDEST);
      break;
    }
    case 'event': {
      const { kind, turn, payload } = write.event;
      ledger.append(kind, turnName(ledger, turn), payload as EventPayloads[typeof kind], stamp);
      break;
    }
    case 'open-session':
      yield* openSession(ledger, write.session, turnName(ledger, write.turn), stamp);
      break;
    case 'change-session':
      yield* changeSession(ledger, write.ref, write.change, write.reason, stamp);
      break;
    case 'receipt': {
      const turn = turnName(ledger, write.turn);
      checkReceipt(turn, write.receipt.turn);
      yield* writeReceipt(ledger, write.receipt, turn, write.session, stamp);
      break;
    }
    case 'send':
      yield* send(ledger, write, stamp);
      break;
    case 'told':
      yield* writeToldAhead(ledger, write.session, write.told);
      break;
    case 'retry': {
      const turn = yield* begunTurn(ledger, write.turn);
      yield* withdrawOpen(ledger, turn, 'The attempt ended.', stamp);
      yield* run(RETRY, turn.no);
      ledger.writes(turn.id);
      ledger.append('turn.retrying', turn, { n: turn.n, attempt: turn.attempt, failure: write.failure }, stamp);
      break;
    }
    case 'ask':
      yield* ask(ledger, yield* begunTurn(ledger, write.turn), write.permission, stamp);
      break;
    case 'deny':
      yield* deny(ledger, write.permission, write.reason, stamp);
      break;
    case 'end':
      yield* endTurn(ledger, yield* begunTurn<TurnRow>(ledger, write.turn, TURN_ROW), write.end, stamp);
      ledger.begun = null;
      ledger.writes(OLDEST);
      break;
  }
}

export function* beginTurn(ledger: SharedLedger, turn: BegunTurn, stamp?: Stamp): Steps<void> {
  const attempt = turn.attempt + 1;
  yield* run(BEGIN, attempt, ledger.tx.now, turn.no);
  ledger.writes(turn.id);
  ledger.begun = { ...turn, state: 'running', attempt };
  ledger.restate(null, 'running');
  ledger.append('turn.started', turn, { n: turn.n, attempt }, stamp);
}

function* send(ledger: SharedLedger, write: Extract<Write, { write: 'send' }>, stamp: Stamp): Steps<void> {
  const { sent, told } = write;
  const turn = ledger.begun?.id === write.turn ? ledger.begun : yield* begunTurn(ledger, write.turn);
  checkNotSent(turn);
  ledger.begun = null;
  const session = sent.session === null ? null : yield* useSession(ledger, sent.session, turn.agent);
  yield* run(SEND, JSON.stringify(sent), session, turn.no);
  ledger.writes(turn.id);
  yield* writeTold(ledger, turn, sent, told);
  ledger.append('turn.sent', turn, { n: turn.n, sent }, stamp);
}

function namedTurns(writes: readonly Write[]): string[] {
  const ids = writes.flatMap((write) => {
    if (write.write === 'event') return write.event.turn ?? [];
    return write.write === 'open-session' || write.write === 'receipt' ? (write.turn ?? []) : [];
  });
  return [...new Set(ids)];
}

function turnName({ names }: SharedLedger, id: string | null): NumberedTurn | null {
  if (id === null) return null;
  const turn = names.get(id);
  if (turn === undefined) throw noTurn();
  return turn;
}

/** The turn that this lease runs. Throws `conflict` when it has ended, or was never begun. */
function* begunTurn<R extends BegunTurn = BegunTurn>(ledger: SharedLedger, id: string, text = BEGUN): Steps<R> {
  ledger.reads(id);
  return begun(yield* one<R>(text, id, ledger.row.conv));
}
