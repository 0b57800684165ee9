import { noSuchPermission } from '../../../core/errors.ts';
import type { NewPermission } from '../../../ports/store/permissions.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { PERMISSION, type PermissionRow } from '../../shared/rows.ts';
import { permissionTaken } from '../../shared/sessions.ts';
import { unindexed } from '../../shared/verbs/steps.ts';
import type { Ledger } from '../conversations/ledger.ts';
import { violated } from '../server/faults.ts';

const BY_ID = `${PERMISSION} WHERE p.id = $1 AND ${unindexed('p.owner')} = $2`;
const OPEN_OF_TURN = `SELECT no, id FROM permissions WHERE turn = $1 AND state = 'open' ORDER BY no`;
const INSERT = `
  INSERT INTO permissions (owner, conv, turn, id, attempt, title, tool_call, options, state, asked_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open', $9)`;
const CLOSE = 'UPDATE permissions SET state = $1, reason = $2, ended_at = $3 WHERE no = $4';
const WAIT = "UPDATE turns SET state = 'waiting' WHERE no = $1";
const GO_ON = `
  UPDATE turns SET state = 'running'
  WHERE no = $1 AND state = 'waiting' AND NOT EXISTS (SELECT 1 FROM permissions WHERE turn = $1 AND state = 'open')`;

export function ask(ledger: Ledger, turn: TurnName, asked: NewPermission, stamp: Stamp): void {
  const { tx, row } = ledger;
  const { id, attempt, title, toolCall, options } = asked;
  const call = JSON.stringify(toolCall ?? null);
  const place = [row.owner, row.conv, turn.no, id, attempt];
  const taken = (fault: unknown) => (violated(fault) === null ? fault : permissionTaken());
  tx.sql.runOr(taken, INSERT, ...place, title, call, JSON.stringify(options), tx.now);
  tx.sql.run(WAIT, turn.no);
  ledger.writes(turn.id);
  ledger.writes('permissions');
  ledger.restate(null, 'waiting');
  ledger.append('permission.asked', turn, { id, title, toolCall: toolCall ?? null, options }, stamp);
}

/** Denies one question. Does nothing if it was answered first. */
export async function deny(ledger: Ledger, id: string, reason: string, stamp: Stamp): Promise<void> {
  const { tx, row } = ledger;
  ledger.reads('permissions');
  const asked = await tx.sql.one<PermissionRow>(BY_ID, id, row.owner);
  if (asked === undefined || asked.conv !== row.conv) throw noSuchPermission(id);
  if (asked.state !== 'open') return;
  tx.sql.run(CLOSE, 'denied', reason, tx.now, asked.no);
  goOn(ledger, asked.turn_no);
  ledger.append('permission.denied', { no: asked.turn_no, id: asked.turn }, { id, reason }, stamp);
}

/** Withdraws every open question of a turn whose attempt ends. */
export async function withdrawOpen(ledger: Ledger, turn: TurnName, reason: string, stamp?: Stamp): Promise<void> {
  withdraw(ledger, turn, await openQuestions(ledger, turn), reason, stamp);
}

interface OpenQuestion {
  readonly no: number;
  readonly id: string;
}

export async function openQuestions(ledger: Ledger, turn: TurnName): Promise<OpenQuestion[]> {
  ledger.reads('permissions');
  return ledger.tx.sql.all<OpenQuestion>(OPEN_OF_TURN, turn.no);
}

/** Withdraws these. */
export function withdraw(
  ledger: Ledger,
  turn: TurnName,
  open: readonly OpenQuestion[],
  reason: string,
  stamp?: Stamp,
): void {
  const { tx } = ledger;
  for (const { no, id } of open) {
    tx.sql.run(CLOSE, 'withdrawn', reason, tx.now, no);
    ledger.append('permission.withdrawn', turn, { id, reason }, stamp);
  }
  if (open.length > 0) goOn(ledger, turn.no);
}

/** The turn runs again, unless it waits for another answer. */
export function goOn(ledger: Ledger, turn: number): void {
  // Whether it waits for another one is found out by the statement.
  ledger.tx.alone();
  ledger.tx.sql.run(GO_ON, turn);
  ledger.restate();
}
