import { noSuchPermission, ThroughlineError } from '../../../core/errors.ts';
import type { NewPermission } from '../../../ports/store/permissions.ts';
import type { Stamp, TurnName } from '../ledger.ts';
import { PERMISSION, type PermissionRow } from '../rows.ts';
import { all, one, run, runUnlessTaken, type Steps, unindexed, unindexedNo } from '../verbs/steps.ts';
import type { SharedLedger } from './ledger.ts';

const BY_ID = `${PERMISSION} WHERE p.id = ? AND ${unindexed('p.owner')} = ?`;
// The index of open questions is used, not that of a turn: an agent may ask any number, and nearly all of them are over.
const OPEN_OF_TURN = `SELECT no, id FROM permissions WHERE conv = ? AND state = 'open' AND ${unindexedNo('turn')} = ? ORDER BY no`;
const INSERT = `
  INSERT INTO permissions (owner, conv, turn, id, attempt, title, tool_call, options, state, asked_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', ?)`;
const CLOSE = 'UPDATE permissions SET state = ?, reason = ?, ended_at = ? WHERE no = ?';
const WAIT = "UPDATE turns SET state = 'waiting' WHERE no = ?";
const GO_ON = `
  UPDATE turns SET state = 'running'
  WHERE no = ?1 AND state = 'waiting'
    AND NOT EXISTS (SELECT 1 FROM permissions WHERE conv = ?2 AND state = 'open' AND ${unindexedNo('turn')} = ?1)`;

export function* ask(ledger: SharedLedger, turn: TurnName, asked: NewPermission, stamp: Stamp): Steps<void> {
  const { tx, row } = ledger;
  const { id, attempt, title, toolCall, options } = asked;
  const place = [row.owner, row.conv, turn.no, id, attempt];
  const call = JSON.stringify(toolCall ?? null);
  yield* runUnlessTaken(taken, INSERT, ...place, title, call, JSON.stringify(options), tx.now);
  yield* run(WAIT, turn.no);
  ledger.writes(turn.id);
  ledger.writes('permissions');
  ledger.restate(null, 'waiting');
  ledger.append('permission.asked', turn, { id, title, toolCall: toolCall ?? null, options }, stamp);
}

function taken(): ThroughlineError {
  return new ThroughlineError('conflict', 'A permission with this id exists already.');
}

/** Denies one question. Does nothing if it was answered first. */
export function* deny(ledger: SharedLedger, id: string, reason: string, stamp: Stamp): Steps<void> {
  const { tx, row } = ledger;
  ledger.reads('permissions');
  const asked = yield* one<PermissionRow>(BY_ID, id, row.owner);
  if (asked === undefined || asked.conv !== row.conv) throw noSuchPermission(id);
  if (asked.state !== 'open') return;
  yield* run(CLOSE, 'denied', reason, tx.now, asked.no);
  yield* goOn(ledger, asked.turn_no);
  ledger.append('permission.denied', { no: asked.turn_no, id: asked.turn }, { id, reason }, stamp);
}

/** Withdraws every open question of a turn whose attempt ends. */
export function* withdrawOpen(ledger: SharedLedger, turn: TurnName, reason: string, stamp?: Stamp): Steps<void> {
  yield* withdraw(ledger, turn, yield* openQuestions(ledger, turn), reason, stamp);
}

interface OpenQuestion {
  readonly no: number;
  readonly id: string;
}

export function* openQuestions(ledger: SharedLedger, turn: TurnName): Steps<OpenQuestion[]> {
  ledger.reads('permissions');
  return yield* all<OpenQuestion>(OPEN_OF_TURN, ledger.row.conv, turn.no);
}

/** Withdraws these. */
export function* withdraw(
  ledger: SharedLedger,
  turn: TurnName,
  open: readonly OpenQuestion[],
  reason: string,
  stamp?: Stamp,
): Steps<void> {
  for (const { no, id } of open) {
    yield* run(CLOSE, 'withdrawn', reason, ledger.tx.now, no);
    ledger.append('permission.withdrawn', turn, { id, reason }, stamp);
  }
  if (open.length > 0) yield* goOn(ledger, turn.no);
}

/** The turn runs again, unless it waits for another answer. */
export function* goOn(ledger: SharedLedger, turn: number): Steps<void> {
  // Whether it waits for another one is found out by the statement.
  ledger.alone();
  yield* run(GO_ON, turn, ledger.row.conv);
  ledger.restate();
}
