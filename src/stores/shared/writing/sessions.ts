import { ThroughlineError } from '../../../core/errors.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import type { NewSession, SessionChange } from '../../../ports/store/sessions.ts';
import type { Stamp, TurnName } from '../ledger.ts';
import { SESSION, type SessionRow } from '../rows.ts';
import { all, one, run, runUnlessTaken, type Steps, type Taken, unindexedNo } from '../verbs/steps.ts';
import type { SharedLedger, UsedSession } from './ledger.ts';
import { countSession } from './totals.ts';

const BY_REF = `${SESSION} WHERE s.ref = ? AND ${unindexedNo('s.conv')} = ?`;
const NAME = `SELECT ref, id, agent, usage, unread, turns FROM sessions WHERE ref = ? AND ${unindexedNo('conv')} = ?`;
const INSERT = `
  INSERT INTO sessions (owner, conv, ref, id, agent, origin, parent, watermark, dropped, condensed_to, state, position, process,
    storage, omitted, unread, turns, usage, opened_at, used_at, used_seq)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 0, ?17, ?18, ?18, ?19)`;
const CHANGE = `
  UPDATE sessions SET watermark = ?, dropped = ?, omitted = ?, condensed_to = ?, position = ?, process = ?, memo = ?, mirrored = ?, context = ?
  WHERE no = ?`;
// Only when it changes: on SQLite, naming the state rewrites the index of usable sessions.
const CHANGE_STATE = 'UPDATE sessions SET state = ? WHERE no = ?';
// Not the session of a turn that was sent and has not ended: the end of that turn sets its state.
const LIVING = `
  SELECT s.no, s.id, s.watermark FROM sessions s WHERE s.conv = ? AND s.state = 'live' AND NOT EXISTS (
    SELECT 1 FROM turns t WHERE t.conv = s.conv AND t.ended_at IS NULL AND t.sent IS NOT NULL AND t.session_id = s.id)
  ORDER BY s.no`;
const USE = 'UPDATE sessions SET used_at = ?, used_seq = ? WHERE ref = ?';
// Only if another session was used later, which is rare. On SQLite an UPDATE that sets `used_seq` writes its indexes again.
const USE_AGAIN = `
  UPDATE sessions SET used_seq = ? WHERE ref = ? AND used_seq < (SELECT max(n.used_seq) FROM sessions n WHERE n.conv = sessions.conv)`;
const END_USE = 'UPDATE sessions SET used_at = ?, turns = turns + ?, usage = ? WHERE ref = ?';
const COUNT = 'UPDATE sessions SET usage = ? WHERE ref = ?';
const GIVE = 'UPDATE turns SET session_id = ? WHERE no = ?';

const ADD_TO_MIRROR = 'INSERT INTO mirrors (session, start, owner, bytes) VALUES (?, ?, ?, ?)';
const FORGET_MIRROR = 'DELETE FROM mirrors WHERE session = ?';

/** A session of this conversation, as the statement reads it. Throws `not_found`. */
function* found<Row>({ row }: SharedLedger, text: string, ref: string): Steps<Row> {
  const session = yield* one<Row>(text, ref, row.conv);
  if (session === undefined) {
    throw new ThroughlineError('not_found', 'There is no such session in this conversation.');
  }
  return session;
}

export function* openSession(
  ledger: SharedLedger,
  session: NewSession,
  turn: TurnName | null,
  stamp?: Stamp,
): Steps<void> {
  const { tx, row } = ledger;
  const { ref, id, agent, origin, watermark, dropped, condensedTo = 0, state, position } = session;
  const parent = session.parent === null ? null : (yield* named(ledger, session.parent)).id;
  const process = session.process === null ? null : JSON.stringify(session.process);
  const omitted = session.omitted === undefined ? null : JSON.stringify(session.omitted);
  const [unread, usage] = [session.unread ? 1 : 0, JSON.stringify(NO_USAGE)];
  yield* runUnlessTaken(
    taken(id),
    INSERT,
    ...[row.owner, row.conv, ref, id, agent, origin, session.parent],
    ...[watermark, dropped, condensedTo, state, position, process],
    ...[session.storage ?? agent, omitted, unread, usage, tx.now, row.next_seq],
  );
  ledger.writes(ref);
  ledger.sessions.set(ref, { ref, id, agent, usage, unread, turns: 0 });
  if (turn !== null) yield* run(GIVE, id, turn.no);
  yield* countSession(ledger);
  ledger.append('session.opened', turn, { id, agent, origin, parent }, stamp);
}

export function* changeSession(
  ledger: SharedLedger,
  ref: string,
  change: SessionChange,
  reason: string | null,
  stamp: Stamp,
): Steps<void> {
  ledger.reads(ref);
  ledger.writes(ref);
  const session = yield* found<SessionRow>(ledger, BY_REF, ref);
  const after = changedSession(session, change);
  const { state, watermark, dropped, omitted, condensedTo, position, process, memo, mirrored, context } = after;
  if (change.mirror !== undefined) yield* addToMirror(ledger, session, change.mirror);
  const columns = [watermark, dropped, omitted, condensedTo, position, process, memo, mirrored, context];
  yield* run(CHANGE, ...columns, session.no);
  if (state !== session.state) yield* runUnlessTaken(taken(session.id), CHANGE_STATE, state, session.no);
  ledger.append('session.changed', null, { id: session.id, state, watermark, reason }, stamp);
}

/**
 * The holder of the conversation is gone, and with it the processes of its sessions. Otherwise a session that is not used again would
 * stay recorded as living for ever. Returns their numbers.
 */
export function* endLiving(ledger: SharedLedger): Steps<ReadonlySet<number>> {
  const { row } = ledger;
  const living = yield* all<Pick<SessionRow, 'no' | 'id' | 'watermark'>>(LIVING, row.conv);
  for (const { no, id, watermark } of living) {
    yield* run(CHANGE_STATE, 'dormant', no);
    const reason = 'the program that held it has ended';
    ledger.append('session.changed', null, { id, state: 'dormant', watermark, reason });
  }
  return new Set(living.map(({ no }) => no));
}

/** Makes the session the most recently used one. Returns the agent's id of it, for its turn. Throws `conflict` when it is another agent's. */
export function* useSession(ledger: SharedLedger, ref: string, agent: string): Steps<string> {
  const { tx, row } = ledger;
  const session = yield* sessionFor(ledger, ref, agent);
  yield* run(USE, tx.now, row.next_seq, ref);
  return session.id;
}

/** Counts the turn that ends, and makes its session the most recently used one. `turns`: 0 for a turn that is not part of the history. */
export function* endUse(ledger: SharedLedger, session: UsedSession, turns: number, usage: Usage): Steps<string> {
  const { tx, row } = ledger;
  const all = addedUsage(session, usage);
  yield* run(USE_AGAIN, row.next_seq, session.ref);
  yield* run(END_USE, tx.now, turns, all, session.ref);
  ledger.sessions.set(session.ref, { ...session, turns: session.turns + turns, usage: all });
  return session.id;
}

/** Throws `conflict` when it is another agent's: a turn is answered by the agent that it was accepted for. */
export function* sessionFor(ledger: SharedLedger, ref: string, agent: string): Steps<UsedSession> {
  const session = yield* named(ledger, ref);
  if (session.agent === agent) return session;
  throw new ThroughlineError('conflict', `The session belongs to the agent "${session.agent}", not to "${agent}".`);
}

/** Adds what was spent outside its turns. */
export function* addSessionUsage(ledger: SharedLedger, ref: string, usage: Usage): Steps<void> {
  const session = yield* named(ledger, ref);
  const all = addedUsage(session, usage);
  yield* run(COUNT, all, ref);
  ledger.sessions.set(ref, { ...session, usage: all });
}

/** As it is after what was written here. */
function* named(ledger: SharedLedger, ref: string): Steps<UsedSession> {
  return ledger.sessions.get(ref) ?? (yield* found<UsedSession>(ledger, NAME, ref));
}

/** A usable session with this id exists already, in another conversation or in this one (R1); or this one was opened before. */
function taken(id: string): Taken {
  return (index, cause) =>
    index === 'sessions_ref'
      ? new ThroughlineError('conflict', 'The session was already opened.')
      : new ThroughlineError('conflict', `The session "${id}" is in use elsewhere.`, { cause });
}

function addedUsage(session: UsedSession, usage: Usage): string {
  return JSON.stringify(addUsage(usage, JSON.parse(session.usage)));
}

/** The columns of a session after a change. The file of a mirror grows at its end, so each turn adds one piece. */
function changedSession(session: SessionRow, change: SessionChange) {
  const { mirror } = change;
  if (mirror !== undefined && mirror.from !== session.mirrored && mirror.from !== 0) {
    throw new ThroughlineError(
      'invalid',
      `The mirror has ${session.mirrored} bytes; the next piece cannot begin at ${mirror.from}.`,
    );
  }
  return {
    state: change.state ?? session.state,
    watermark: change.watermark ?? session.watermark,
    dropped: change.dropped ?? session.dropped,
    omitted: change.omitted === undefined ? session.omitted : JSON.stringify(change.omitted),
    condensedTo: change.condensedTo ?? session.condensedTo,
    position: change.position === undefined ? session.position : change.position,
    process: change.process === undefined ? session.process : change.process && JSON.stringify(change.process),
    memo: change.memo === undefined ? session.memo : change.memo,
    context: change.context === undefined ? session.context : JSON.stringify(change.context),
    mirrored: mirror === undefined ? session.mirrored : mirror.from + mirror.bytes.byteLength,
  };
}

/** Costs the same at any size. */
function* addToMirror(
  { row }: SharedLedger,
  session: SessionRow,
  { from, bytes }: NonNullable<SessionChange['mirror']>,
): Steps<void> {
  if (from === 0 && session.mirrored > 0) yield* run(FORGET_MIRROR, session.no);
  if (bytes.byteLength > 0) yield* run(ADD_TO_MIRROR, session.no, from, row.owner, bytes);
}
