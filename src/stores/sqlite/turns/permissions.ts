import { noSuchPermission } from '../../../core/errors.ts';
import type { NewPermission } from '../../../ports/store/permissions.ts';
import type { Stamp, TurnName } from '../../shared/ledger.ts';
import { PERMISSION, type PermissionRow } from '../../shared/rows.ts';
import { permissionTaken } from '../../shared/sessions.ts';
import type { Ledger } from '../conversations/ledger.ts';

const BY_ID = `${PERMISSION} WHERE p.id = ? AND c.owner = ?`;
const OPEN_OF_TURN = `SELECT no, id FROM permissions WHERE turn = ? AND state = 'open' ORDER BY no`;
const INSERT = `
  INSERT INTO permissions (owner, conv, turn, id, attempt, title, tool_call, options, state, asked_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', ?)`;
const CLOSE = 'UPDATE permissions SET state = ?, reason = ?, ended_at = ? WHERE no = ?';
const WAIT = "UPDATE turns SET state = 'waiting' WHERE no = ?";
const GO_ON = `
  UPDATE turns SET state = 'running'
  WHERE no = ?1 AND state = 'waiting' AND NOT EXISTS (SELECT 1 FROM permissions WHERE turn = ?1 AND state = 'open')`;
const TAKEN = 'SELECT 1 FROM permissions WHERE id = ?';

export function ask(ledger: Ledger, turn: TurnName, asked: NewPermission, stamp: Stamp): void {
  const { tx, row } = ledger;
  const { id, attempt, title, toolCall, options } = asked;
  if (tx.db.one(TAKEN, id) !== undefined) throw permissionTaken();
  const call = JSON.stringify(toolCall ?? null);
  tx.db.run(INSERT, row.owner, row.conv, turn.no, id, attempt, title, call, JSON.stringify(options), tx.now);
  tx.db.run(WAIT, turn.no);
  ledger.restate();
  ledger.append('permission.asked', turn, { id, title, toolCall: toolCall ?? null, options }, stamp);
}

/** Denies one question. Does nothing if it was answered first. */
export function deny(ledger: Ledger, id: string, reason: string, stamp: Stamp): void {
  const { tx, row } = ledger;
  const asked = tx.db.one<PermissionRow>(BY_ID, id, row.owner);
  if (asked === undefined || asked.conv !== row.conv) throw noSuchPermission(id);
  if (asked.state !== 'open') return;
  tx.db.run(CLOSE, 'denied', reason, tx.now, asked.no);
  goOn(ledger, asked.turn_no);
  ledger.append('permission.denied', { no: asked.turn_no, id: asked.turn }, { id, reason }, stamp);
}

/** Withdraws every open question of a turn whose attempt ends. */
export function withdrawOpen(ledger: Ledger, turn: TurnName, reason: string, stamp?: Stamp): void {
  const { tx } = ledger;
  const open = tx.db.all<{ no: number; id: string }>(OPEN_OF_TURN, turn.no);
  for (const { no, id } of open) {
    tx.db.run(CLOSE, 'withdrawn', reason, tx.now, no);
    ledger.append('permission.withdrawn', turn, { id, reason }, stamp);
  }
  if (open.length > 0) goOn(ledger, turn.no);
}

/** The turn runs again, unless it waits for another answer. */
export function goOn(ledger: Ledger, turn: number): void {
  ledger.tx.db.run(GO_ON, turn);
  ledger.restate();
}
