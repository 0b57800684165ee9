import { NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import type { NewSession, SessionChange } from '../../../ports/store/sessions.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { SESSION, type SessionRow } from '../../shared/rows.ts';
import {
  addedUsage,
  changedSession,
  checkAgent,
  noSession,
  type SessionName,
  sessionOpened,
  sessionTaken,
} from '../../shared/sessions.ts';
import type { Ledger } from '../conversations/ledger.ts';
import { isConstraint } from '../file/faults.ts';
import { countSession } from './totals.ts';

const BY_REF = `${SESSION} WHERE s.ref = ? AND s.conv = ?`;
const NAME = 'SELECT no, id, agent, usage FROM sessions WHERE ref = ? AND conv = ?';
const REF_TAKEN = 'SELECT 1 FROM sessions WHERE ref = ?';
const INSERT = `
  INSERT INTO sessions (owner, conv, ref, id, agent, origin, parent, watermark, dropped, condensed_to, state, position, process,
    storage, omitted, unread, turns, usage, opened_at, used_at, used_seq)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`;
const CHANGE = `
  UPDATE sessions SET watermark = ?, dropped = ?, omitted = ?, condensed_to = ?, position = ?, process = ?, memo = ?, mirrored = ?
  WHERE no = ?`;
// A separate statement: naming the state rewrites the index of usable sessions.
const CHANGE_STATE = 'UPDATE sessions SET state = ? WHERE no = ?';
// Not the session of a turn that was sent and has not ended: the end of that turn sets its state.
const LIVING = `
  SELECT s.no, s.id, s.watermark FROM sessions s WHERE s.conv = ? AND s.state = 'live' AND NOT EXISTS (
    SELECT 1 FROM turns t WHERE t.conv = s.conv AND t.ended_at IS NULL AND t.sent IS NOT NULL AND t.session_id = s.id)
  ORDER BY s.no`;
const USE = 'UPDATE sessions SET used_at = ?, used_seq = ? WHERE no = ?';
const END_USE = 'UPDATE sessions SET used_at = ?, used_seq = ?, turns = turns + ?, usage = ? WHERE no = ?';
const COUNT = 'UPDATE sessions SET usage = ? WHERE no = ?';
const GIVE = 'UPDATE turns SET session_id = ? WHERE no = ?';

const ADD_TO_MIRROR = 'INSERT INTO mirrors (session, start, owner, bytes) VALUES (?, ?, ?, ?)';
const FORGET_MIRROR = 'DELETE FROM mirrors WHERE session = ?';

/** A session of this conversation, as the statement reads it. Throws `not_found`. */
function found<Row>({ tx, row }: Ledger, sql: string, ref: string): Row {
  const session = tx.db.one<Row>(sql, ref, row.conv);
  if (session === undefined) throw noSession();
  return session;
}

export function openSession(ledger: Ledger, session: NewSession, turn: TurnName | null, stamp?: Stamp): void {
  const { tx, row } = ledger;
  const { ref, id, agent, origin } = session;
  if (tx.db.one(REF_TAKEN, ref) !== undefined) throw sessionOpened();
  const parent = session.parent === null ? null : found<SessionName>(ledger, NAME, session.parent).id;
  orConflict(id, () =>
    tx.db.run(
      INSERT,
      row.owner,
      row.conv,
      ref,
      id,
      agent,
      origin,
      session.parent,
      session.watermark,
      session.dropped,
      session.condensedTo ?? 0,
      session.state,
      session.position,
      session.process === null ? null : JSON.stringify(session.process),
      session.storage ?? agent,
      session.omitted === undefined ? null : JSON.stringify(session.omitted),
      session.unread ? 1 : 0,
      JSON.stringify(NO_USAGE),
      tx.now,
      tx.now,
      row.next_seq,
    ),
  );
  if (turn !== null) tx.db.run(GIVE, id, turn.no);
  countSession(ledger);
  ledger.append('session.opened', turn, { id, agent, origin, parent }, stamp);
}

export function changeSession(
  ledger: Ledger,
  ref: string,
  change: SessionChange,
  reason: string | null,
  stamp: Stamp,
): void {
  const { db } = ledger.tx;
  const session = found<SessionRow>(ledger, BY_REF, ref);
  const after = changedSession(session, change);
  const { state, watermark, dropped, omitted, condensedTo, position, process, memo, mirrored } = after;
  if (change.mirror !== undefined) addToMirror(ledger, session, change.mirror);
  db.run(CHANGE, watermark, dropped, omitted, condensedTo, position, process, memo, mirrored, session.no);
  if (state !== session.state) orConflict(session.id, () => db.run(CHANGE_STATE, state, session.no));
  ledger.append('session.changed', null, { id: session.id, state, watermark, reason }, stamp);
}

/**
 * The holder of the conversation is gone, and with it the processes of its sessions. Otherwise a session that is not used again would
 * stay recorded as living for ever. Trackers hold their sessions themselves.
 */
export function endLiving(ledger: Ledger): void {
  const { tx, row } = ledger;
  if (row.driver !== 'worker') return;
  for (const { no, id, watermark } of tx.db.all<Pick<SessionRow, 'no' | 'id' | 'watermark'>>(LIVING, row.conv)) {
    tx.db.run(CHANGE_STATE, 'dormant', no);
    const reason = 'the program that held it has ended';
    ledger.append('session.changed', null, { id, state: 'dormant', watermark, reason });
  }
}

/**
 * Makes the session the most recently used one. Returns the agent's id of it, for its turn. Throws `conflict` when it is another
 * agent's: a turn is answered by the agent that it was accepted for.
 */
export function useSession(ledger: Ledger, ref: string, agent: string): string {
  const { tx, row } = ledger;
  const { no, id } = sessionOf(ledger, ref, agent);
  tx.db.run(USE, tx.now, row.next_seq, no);
  return id;
}

/** The same at the end of a turn, which is counted. `turns`: 0 for a turn that is not part of the history. */
export function endUse(ledger: Ledger, ref: string, agent: string, turns: number, usage: Usage): string {
  const { tx, row } = ledger;
  const session = sessionOf(ledger, ref, agent);
  tx.db.run(END_USE, tx.now, row.next_seq, turns, addedUsage(session, usage), session.no);
  return session.id;
}

/** Whether it was adopted without its history, and no turn of it is recorded yet: before that turn, something is not known. */
export function isFirstOfUnread(ledger: Ledger, ref: string): boolean {
  const { unread, turns } = found<SessionRow>(ledger, BY_REF, ref);
  return unread === 1 && turns === 0;
}

/** Adds what was spent outside its turns. */
export function addSessionUsage(ledger: Ledger, ref: string, usage: Usage): void {
  const session = found<SessionName>(ledger, NAME, ref);
  ledger.tx.db.run(COUNT, addedUsage(session, usage), session.no);
}

function sessionOf(ledger: Ledger, ref: string, agent: string): SessionName {
  const session = found<SessionName>(ledger, NAME, ref);
  checkAgent(session, agent);
  return session;
}

/** A usable session with this id exists already, in another conversation or in this one (R1). */
function orConflict(id: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    throw isConstraint(error) ? sessionTaken(id, error) : error;
  }
}

/** Costs the same at any size. */
function addToMirror(
  { tx, row }: Ledger,
  session: SessionRow,
  { from, bytes }: NonNullable<SessionChange['mirror']>,
): void {
  if (from === 0 && session.mirrored > 0) tx.db.run(FORGET_MIRROR, session.no);
  if (bytes.byteLength > 0) tx.db.run(ADD_TO_MIRROR, session.no, from, row.owner, bytes);
}
