import { ThroughlineError } from '../../core/errors.ts';
import { hasEnded, type Turn } from '../../core/turn.ts';
import { NO_USAGE } from '../../core/usage.ts';
import { Ledger } from './ledger.ts';
import { TURN, type TurnRow, turnOf } from './rows.ts';
import type { Tx } from './write-queue.ts';

const BY_ID = `${TURN} WHERE t.id = ? AND t.owner = ?`;
const CANCEL = "UPDATE turns SET state = 'cancelled', cancel_requested = 1, failure = ?, ended_at = ? WHERE no = ?";
const REQUEST = 'UPDATE turns SET cancel_requested = 1 WHERE no = ?';

export function requestCancel(tx: Tx, owner: string, id: string, by: string): Turn {
  const turn = tx.db.one<TurnRow>(BY_ID, id, owner);
  if (turn === undefined) throw new ThroughlineError('not_found', 'There is no such turn.');
  if (hasEnded(turn.state) || (turn.cancel_requested === 1 && turn.state !== 'queued')) return turnOf(tx.db, turn);
  const ledger = Ledger.byNo(tx, turn.conv);
  ledger.append('turn.cancel_requested', turn, { n: turn.n, by });
  if (turn.state === 'queued') endQueued(ledger, turn, by);
  else tx.db.run(REQUEST, turn.no);
  ledger.save();
  return turnOf(tx.db, tx.db.one<TurnRow>(BY_ID, id, owner) as TurnRow);
}

/** Nobody has begun it, so it ends here and now, and never was part of the history. */
function endQueued(ledger: Ledger, turn: TurnRow, by: string): void {
  const { row, tx } = ledger;
  const failure = { code: 'cancelled', message: `Cancelled by ${by} before it began.` } as const;
  tx.db.run(CANCEL, JSON.stringify(failure), tx.now, turn.no);
  ledger.append('turn.ended', turn, { n: turn.n, outcome: 'cancelled', failure, reply: '', usage: NO_USAGE });
  row.pending -= 1;
  if (row.pending === 0 && row.worker === null) row.ready_at = null;
  ledger.touch();
}
