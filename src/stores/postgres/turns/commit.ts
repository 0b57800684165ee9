import type { EventPayloads } from '../../../core/event.ts';
import type { Fence } from '../../../ports/store/leases.ts';
import type { Committed, Write } from '../../../ports/store/writes.ts';
import type { Stamp } from '../../shared/ledger.ts';
import { TURN, type TurnRow } from '../../shared/rows.ts';
import {
  begunTurn as begun,
  checkNotSent,
  checkReceipt,
  checkWatermarks,
  noTurn,
  turnToBegin,
} from '../../shared/turns.ts';
import { unindexed, unindexedNo } from '../../shared/verbs/steps.ts';
import { type BegunTurn, Ledger, type NumberedTurn } from '../conversations/ledger.ts';
import type { Tx } from '../server/access.ts';
import { beginTurn } from './claim.ts';
import { endTurn } from './end.ts';
import { ask, deny, withdrawOpen } from './permissions.ts';
import { writeReceipt, writeTold, writeToldAhead } from './receipts.ts';
import { changeSession, openSession, useSession } from './sessions.ts';

const LAST_OF = `
  SELECT seq FROM events
  WHERE conv = (SELECT no FROM conversations WHERE id = $1) AND epoch = $2 AND counter >= $3 AND counter < $4
  ORDER BY counter DESC, part DESC LIMIT 1`;
const TURN_NAME = `
  SELECT no, id, n FROM turns WHERE id = $1 AND ${unindexedNo('conv')} = (SELECT no FROM conversations WHERE id = $2)`;
const TURN_ROW = `${TURN} WHERE t.id = $1 AND ${unindexedNo('t.conv')} = $2`;
const BEGUN = `SELECT no, id, n, state, agent, attempt, sent FROM turns WHERE id = $1 AND ${unindexedNo('conv')} = $2`;
const OLDEST_OPEN =
  'SELECT no, id, n, state, agent, attempt, sent FROM turns WHERE conv = $1 AND ended_at IS NULL ORDER BY n LIMIT 1';
/** Of the oldest open turn but the one that ends. */
const NEXT_AGENT = `
  SELECT agent FROM turns WHERE conv = (SELECT no FROM conversations WHERE id = $1) AND ended_at IS NULL AND ${unindexed('id')} <> $2
  ORDER BY n LIMIT 1`;
/** That turn, among what a commit has written. */
const OLDEST = 'oldest open turn';
const SEND = 'UPDATE turns SET sent = $1, was_sent = 1, session_id = coalesce($2, session_id) WHERE no = $3';
const RETRY = "UPDATE turns SET sent = NULL, attempt = attempt + 1, state = 'running' WHERE no = $1";

/**
 * All writes, in order, or none. Every write has its own counter within the epoch, and its events carry it. If any of these
 * counters was used before, this is a repetition of that commit.
 */
export async function commit(tx: Tx, fence: Fence, counter: number, writes: readonly Write[]): Promise<Committed> {
  // Sent at once, and run one after the other: the second sees what was written before the conversation was locked.
  const ends = writes.filter((write) => write.write === 'end');
  const ended = ends.length === 1 ? ends[0]?.turn : undefined;
  const [ledger, repeated, named, next] = await Promise.all([
    Ledger.under(tx, fence),
    tx.sql.one<{ seq: number }>(LAST_OF, fence.conversation, fence.epoch, counter, counter + writes.length),
    Promise.all(namedTurns(writes).map((id) => tx.sql.one<NumberedTurn>(TURN_NAME, id, fence.conversation))),
    ended === undefined ? undefined : tx.sql.one<{ agent: string }>(NEXT_AGENT, fence.conversation, ended),
  ]);
  const { row } = ledger;
  if (writes.length === 0) return { seq: row.next_seq - 1, open: row.pending };
  // It was made before, and only its reply was lost (R5).
  if (repeated !== undefined) return { ...repeated, open: row.pending };
  for (const turn of named) if (turn !== undefined) ledger.names.set(turn.id, turn);
  for (const [index, write] of writes.entries()) {
    await apply(ledger, write, { epoch: fence.epoch, counter: counter + index, part: 0 });
  }
  checkWatermarks(row, writes);
  await ledger.save();
  return { seq: row.next_seq - 1, open: row.pending, ...(ended !== undefined && { next: next?.agent ?? null }) };
}

async function apply(ledger: Ledger, write: Write, stamp: Stamp): Promise<void> {
  switch (write.write) {
    case 'begin': {
      ledger.reads(OLDEST);
      const oldest = await ledger.tx.sql.one<BegunTurn>(OLDEST_OPEN, ledger.row.conv);
      beginTurn(ledger, turnToBegin(oldest, write.turn), stamp);
      ledger.writes(OLDEST);
      break;
    }
    case 'event': {
      const { kind, turn, payload } = write.event;
      ledger.append(kind, turnName(ledger, turn), payload as EventPayloads[typeof kind], stamp);
      break;
    }
    case 'open-session':
      await openSession(ledger, write.session, turnName(ledger, write.turn), stamp);
      break;
    case 'change-session':
      await changeSession(ledger, write.ref, write.change, write.reason, stamp);
      break;
    case 'receipt': {
      const turn = turnName(ledger, write.turn);
      checkReceipt(turn, write.receipt.turn);
      await writeReceipt(ledger, write.receipt, turn, write.session, stamp);
      break;
    }
    case 'send':
      await send(ledger, write, stamp);
      break;
    case 'told':
      writeToldAhead(ledger, write.session, write.told);
      break;
    case 'retry': {
      const turn = await begunTurn(ledger, write.turn);
      await withdrawOpen(ledger, turn, 'The attempt ended.', stamp);
      ledger.tx.sql.run(RETRY, turn.no);
      ledger.writes(turn.id);
      ledger.append('turn.retrying', turn, { n: turn.n, attempt: turn.attempt, failure: write.failure }, stamp);
      break;
    }
    case 'ask':
      ask(ledger, await begunTurn(ledger, write.turn), write.permission, stamp);
      break;
    case 'deny':
      await deny(ledger, write.permission, write.reason, stamp);
      break;
    case 'end':
      await endTurn(ledger, await begunTurn<TurnRow>(ledger, write.turn, TURN_ROW), write.end, stamp);
      ledger.writes(OLDEST);
      break;
  }
}

async function send(ledger: Ledger, write: Extract<Write, { write: 'send' }>, stamp: Stamp): Promise<void> {
  const { sent, told } = write;
  const turn = ledger.begun?.id === write.turn ? ledger.begun : await begunTurn(ledger, write.turn);
  checkNotSent(turn);
  ledger.begun = null;
  const session = sent.session === null ? null : await useSession(ledger, sent.session, turn.agent);
  ledger.tx.sql.run(SEND, JSON.stringify(sent), session, turn.no);
  ledger.writes(turn.id);
  writeTold(ledger, turn, sent, told);
  ledger.append('turn.sent', turn, { n: turn.n, sent }, stamp);
}

function namedTurns(writes: readonly Write[]): string[] {
  const ids = writes.flatMap((write) => {
    if (write.write === 'event') return write.event.turn ?? [];
    return write.write === 'open-session' || write.write === 'receipt' ? (write.turn ?? []) : [];
  });
  return [...new Set(ids)];
}

function turnName({ names }: Ledger, id: string | null): NumberedTurn | null {
  if (id === null) return null;
  const turn = names.get(id);
  if (turn === undefined) throw noTurn();
  return turn;
}

async function begunTurn<R extends BegunTurn = BegunTurn>(ledger: Ledger, id: string, text = BEGUN): Promise<R> {
  const { tx, row } = ledger;
  ledger.reads(id);
  return begun(await tx.sql.one<R>(text, id, row.conv));
}
