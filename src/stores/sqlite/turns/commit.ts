import type { EventPayloads } from '../../../core/event.ts';
import type { Fence } from '../../../ports/store/leases.ts';
import type { Committed, Write } from '../../../ports/store/writes.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { TURN, type TurnRow } from '../../shared/rows.ts';
import {
  begunTurn as begun,
  checkNotSent,
  checkReceipt,
  checkWatermarks,
  noTurn,
  turnToBegin,
} from '../../shared/turns.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Tx } from '../file/write-queue.ts';
import { beginTurn } from './claim.ts';
import { endTurn } from './end.ts';
import { ask, deny, withdrawOpen } from './permissions.ts';
import { writeReceipt, writeTold, writeToldAhead } from './receipts.ts';
import { changeSession, openSession, useSession } from './sessions.ts';

const LAST_OF = `
  SELECT seq FROM events WHERE conv = ? AND epoch = ? AND counter >= ? AND counter < ?
  ORDER BY counter DESC, part DESC LIMIT 1`;
const TURN_NAME = 'SELECT no, id, n FROM turns WHERE id = ? AND conv = ?';
const TURN_ROW = `${TURN} WHERE t.id = ? AND t.conv = ?`;
const BEGUN = 'SELECT no, id, n, state, agent, attempt, sent FROM turns WHERE id = ? AND conv = ?';
const OLDEST_OPEN =
  'SELECT no, id, n, state, agent, attempt, sent FROM turns WHERE conv = ? AND ended_at IS NULL ORDER BY n LIMIT 1';
const SEND = 'UPDATE turns SET sent = ?, was_sent = 1, session_id = coalesce(?, session_id) WHERE no = ?';
const RETRY = "UPDATE turns SET sent = NULL, attempt = attempt + 1, state = 'running' WHERE no = ?";

/**
 * All writes, in order, or none. Every write has its own counter within the epoch, and its events carry it. If any of these
 * counters was used before, this is a repetition of that commit.
 */
export function commit(tx: Tx, fence: Fence, counter: number, writes: readonly Write[]): Committed {
  const ledger = Ledger.under(tx, fence);
  const { row } = ledger;
  if (writes.length === 0) return { seq: row.next_seq - 1, open: row.pending };
  const repeated = earlierSeq(ledger, counter, writes.length);
  if (repeated !== null) return { seq: repeated, open: row.pending };
  for (const [index, write] of writes.entries()) {
    apply(ledger, write, { epoch: fence.epoch, counter: counter + index, part: 0 });
  }
  checkWatermarks(row, writes);
  ledger.save();
  const ends = writes.filter(({ write }) => write === 'end').length === 1;
  const next = ends && row.pending > 0 ? tx.db.one<BegunTurn>(OLDEST_OPEN, row.conv) : undefined;
  return { seq: row.next_seq - 1, open: row.pending, ...(ends && { next: next?.agent ?? null }) };
}

/** The last event of this commit, if it was made before and only its reply was lost (R5). */
function earlierSeq({ tx, row }: Ledger, counter: number, count: number): number | null {
  return tx.db.one<{ seq: number }>(LAST_OF, row.conv, row.epoch, counter, counter + count)?.seq ?? null;
}

function apply(ledger: Ledger, write: Write, stamp: Stamp): void {
  switch (write.write) {
    case 'begin': {
      const oldest = ledger.tx.db.one<BegunTurn>(OLDEST_OPEN, ledger.row.conv);
      beginTurn(ledger, turnToBegin(oldest, write.turn), stamp);
      break;
    }
    case 'event': {
      const { kind, turn, payload } = write.event;
      ledger.append(kind, turnName(ledger, turn), payload as EventPayloads[typeof kind], stamp);
      break;
    }
    case 'open-session':
      openSession(ledger, write.session, turnName(ledger, write.turn), stamp);
      break;
    case 'change-session':
      changeSession(ledger, write.ref, write.change, write.reason, stamp);
      break;
    case 'receipt': {
      const turn = turnName(ledger, write.turn);
      checkReceipt(turn, write.receipt.turn);
      writeReceipt(ledger, write.receipt, turn, write.session, stamp);
      break;
    }
    case 'send': {
      const turn = begunTurn(ledger, write.turn);
      checkNotSent(turn);
      const session = write.sent.session === null ? null : useSession(ledger, write.sent.session, turn.agent);
      ledger.tx.db.run(SEND, JSON.stringify(write.sent), session, turn.no);
      writeTold(ledger, turn, write.sent, write.told);
      ledger.append('turn.sent', turn, { n: turn.n, sent: write.sent }, stamp);
      break;
    }
    case 'told':
      writeToldAhead(ledger, write.session, write.told);
      break;
    case 'retry': {
      const turn = begunTurn(ledger, write.turn);
      withdrawOpen(ledger, turn, 'The attempt ended.', stamp);
      ledger.tx.db.run(RETRY, turn.no);
      ledger.append('turn.retrying', turn, { n: turn.n, attempt: turn.attempt, failure: write.failure }, stamp);
      break;
    }
    case 'ask':
      ask(ledger, begunTurn(ledger, write.turn), write.permission, stamp);
      break;
    case 'deny':
      deny(ledger, write.permission, write.reason, stamp);
      break;
    case 'end':
      endTurn(ledger, begunTurn<TurnRow>(ledger, write.turn, TURN_ROW), write.end, stamp);
      break;
  }
}

type NumberedTurn = TurnName & { readonly n: number };

function turnName({ tx, row }: Ledger, id: string | null): NumberedTurn | null {
  if (id === null) return null;
  const turn = tx.db.one<NumberedTurn>(TURN_NAME, id, row.conv);
  if (turn === undefined) throw noTurn();
  return turn;
}

type BegunTurn = Pick<TurnRow, 'no' | 'id' | 'n' | 'state' | 'agent' | 'attempt' | 'sent'>;

/** The turn that this lease runs. Throws `conflict` when it has ended, or was never begun. */
function begunTurn<R extends BegunTurn = BegunTurn>({ tx, row }: Ledger, id: string, sql = BEGUN): R {
  return begun(tx.db.one<R>(sql, id, row.conv));
}
