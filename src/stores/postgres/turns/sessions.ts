import { NO_USAGE, type Usage } from '../../../core/turn/usage.ts';
import type { NewSession, SessionChange } from '../../../ports/store/sessions.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { SESSION, type SessionRow } from '../../shared/rows.ts';
import {
  addedUsage,
  changedSession,
  checkAgent,
  noSession,
  sessionOpened,
  sessionTaken,
} from '../../shared/sessions.ts';
import { unindexedNo } from '../../shared/verbs/steps.ts';
import type { Ledger, UsedSession } from '../conversations/ledger.ts';
import type { Refusal } from '../server/connect.ts';
import { violated } from '../server/faults.ts';
import { countSession } from './totals.ts';

const BY_REF = `${SESSION} WHERE s.ref = $1 AND ${unindexedNo('s.conv')} = $2`;
const NAME = `SELECT ref, id, agent, usage, unread, turns FROM sessions WHERE ref = $1 AND ${unindexedNo('conv')} = $2`;
const INSERT = `
  INSERT INTO sessions (owner, conv, ref, id, agent, origin, parent, watermark, dropped, condensed_to, state, position, process,
    storage, omitted, unread, turns, usage, opened_at, used_at, used_seq)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 0, $17, $18, $18, $19)`;
const CHANGE = `
  UPDATE sessions SET watermark = $1, dropped = $2, omitted = $3, condensed_to = $4, position = $5, process = $6, memo = $7,
    mirrored = $8, state = $9 WHERE no = $10`;
const CHANGE_STATE = 'UPDATE sessions SET state = $1 WHERE no = $2';
// Not the session of a turn that was sent and has not ended: the end of that turn sets its state.
const LIVING = `
  SELECT s.no, s.id, s.watermark FROM sessions s WHERE s.conv = $1 AND s.state = 'live' AND NOT EXISTS (
    SELECT 1 FROM turns t WHERE t.conv = s.conv AND t.ended_at IS NULL AND t.sent IS NOT NULL AND t.session_id = s.id)
  ORDER BY s.no`;
const USE = 'UPDATE sessions SET used_at = $1, used_seq = $2 WHERE ref = $3';
const END_USE = 'UPDATE sessions SET used_at = $1, turns = turns + $2, usage = $3 WHERE ref = $4';
const COUNT = 'UPDATE sessions SET usage = $1 WHERE ref = $2';
const GIVE = 'UPDATE turns SET session_id = $1 WHERE no = $2';

const ADD_TO_MIRROR = 'INSERT INTO mirrors (session, start, owner, bytes) VALUES ($1, $2, $3, $4)';
const FORGET_MIRROR = 'DELETE FROM mirrors WHERE session = $1';

/** A session of this conversation, as the statement reads it. Throws `not_found`. */
async function found<R>({ tx, row }: Ledger, text: string, ref: string): Promise<R> {
  const session = await tx.sql.one<R>(text, ref, row.conv);
  if (session === undefined) throw noSession();
  return session;
}

export async function openSession(
  ledger: Ledger,
  session: NewSession,
  turn: TurnName | null,
  stamp?: Stamp,
): Promise<void> {
  const { tx, row } = ledger;
  const { ref, id, agent, origin, watermark, dropped, condensedTo = 0, state, position } = session;
  const parent = session.parent === null ? null : (await named(ledger, session.parent)).id;
  const process = session.process === null ? null : JSON.stringify(session.process);
  const omitted = session.omitted === undefined ? null : JSON.stringify(session.omitted);
  const knows = [watermark, dropped, condensedTo, state, position, process];
  const [unread, usage] = [session.unread ? 1 : 0, JSON.stringify(NO_USAGE)];
  const rest = [session.storage ?? agent, omitted, unread, usage];
  tx.sql.runOr(
    orConflict(id),
    INSERT,
    ...[row.owner, row.conv, ref, id, agent, origin, session.parent, ...knows, ...rest, tx.now, row.next_seq],
  );
  ledger.writes(ref);
  ledger.sessions.set(ref, { ref, id, agent, usage, unread, turns: 0 });
  if (turn !== null) tx.sql.run(GIVE, id, turn.no);
  countSession(ledger);
  ledger.append('session.opened', turn, { id, agent, origin, parent }, stamp);
}

export async function changeSession(
  ledger: Ledger,
  ref: string,
  change: SessionChange,
  reason: string | null,
  stamp: Stamp,
): Promise<void> {
  const { sql } = ledger.tx;
  ledger.reads(ref);
  ledger.writes(ref);
  const session = await found<SessionRow>(ledger, BY_REF, ref);
  const after = changedSession(session, change);
  const { state, watermark, dropped, omitted, condensedTo, position, process, memo, mirrored } = after;
  if (change.mirror !== undefined) addToMirror(ledger, session, change.mirror);
  const lacks = [watermark, dropped, omitted, condensedTo];
  sql.runOr(orConflict(session.id), CHANGE, ...lacks, position, process, memo, mirrored, state, session.no);
  ledger.append('session.changed', null, { id: session.id, state, watermark, reason }, stamp);
}

/**
 * The holder of the conversation is gone, and with it the processes of its sessions. Otherwise a session that is not used again would
 * stay recorded as living for ever. Trackers hold their sessions themselves. Returns their numbers.
 */
export async function endLiving(ledger: Ledger): Promise<ReadonlySet<number>> {
  const { tx, row } = ledger;
  if (row.driver !== 'worker') return new Set();
  const living = await tx.sql.all<Pick<SessionRow, 'no' | 'id' | 'watermark'>>(LIVING, row.conv);
  for (const { no, id, watermark } of living) {
    tx.sql.run(CHANGE_STATE, 'dormant', no);
    const reason = 'the program that held it has ended';
    ledger.append('session.changed', null, { id, state: 'dormant', watermark, reason });
  }
  return new Set(living.map(({ no }) => no));
}

/** Makes the session the most recently used one. Returns the agent's id of it, for its turn. Throws `conflict` when it is another agent's. */
export async function useSession(ledger: Ledger, ref: string, agent: string): Promise<string> {
  const { tx, row } = ledger;
  const session = await sessionFor(ledger, ref, agent);
  tx.sql.run(USE, tx.now, row.next_seq, ref);
  return session.id;
}

/**
 * Counts the turn that ends. `turns`: 0 for one that is not part of the history. `wasUsed`: it has been the most recently used session since the turn
 * was sent. To change that again would change its indexes.
 */
export function endUse(ledger: Ledger, session: UsedSession, turns: number, usage: Usage, wasUsed: boolean): string {
  const { tx, row } = ledger;
  const all = addedUsage(session, usage);
  if (!wasUsed) tx.sql.run(USE, tx.now, row.next_seq, session.ref);
  tx.sql.run(END_USE, tx.now, turns, all, session.ref);
  ledger.sessions.set(session.ref, { ...session, turns: session.turns + turns, usage: all });
  return session.id;
}

/** Throws `conflict` when it is another agent's. */
export async function sessionFor(ledger: Ledger, ref: string, agent: string): Promise<UsedSession> {
  const session = await named(ledger, ref);
  checkAgent(session, agent);
  return session;
}

/** Adds what was spent outside its turns. */
export async function addSessionUsage(ledger: Ledger, ref: string, usage: Usage): Promise<void> {
  const session = await named(ledger, ref);
  const all = addedUsage(session, usage);
  ledger.tx.sql.run(COUNT, all, ref);
  ledger.sessions.set(ref, { ...session, usage: all });
}

/** As it is after what was written here. */
async function named(ledger: Ledger, ref: string): Promise<UsedSession> {
  return ledger.sessions.get(ref) ?? found<UsedSession>(ledger, NAME, ref);
}

function orConflict(id: string): Refusal {
  return (fault) => {
    if (violated(fault) === 'sessions_ref') return sessionOpened();
    return violated(fault) === null ? fault : sessionTaken(id, fault);
  };
}

/** Costs the same at any size. */
function addToMirror(
  { tx, row }: Ledger,
  session: SessionRow,
  { from, bytes }: NonNullable<SessionChange['mirror']>,
): void {
  if (from === 0 && session.mirrored > 0) tx.sql.run(FORGET_MIRROR, session.no);
  if (bytes.byteLength > 0) tx.sql.run(ADD_TO_MIRROR, session.no, from, row.owner, bytes);
}
