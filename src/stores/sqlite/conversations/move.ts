import type { Conversation } from '../../../core/conversation.ts';
import type { Move } from '../../../ports/store/conversations.ts';
import { type LeaseRow, leavePlace } from '../../shared/ledger.ts';
import { conversationOf } from '../../shared/rows.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { dropIdleWorker, placeName } from '../turns/leases.ts';
import { conversationRow } from './conversations.ts';
import { Ledger } from './ledger.ts';

const MOVE = 'UPDATE conversations SET place = ?, sandbox = id, cwd = NULL WHERE no = ?';
const MOVE_LEASE = 'UPDATE leases SET place = ? WHERE conv = ?';
// Its own one is made again where it is now.
const MOVE_SANDBOX = `
  UPDATE sandboxes SET place = ?, opened_at = NULL, opened_by = NULL, rested_at = NULL, setup = '[]', disk = NULL, disk_bytes = 0,
    holder = NULL, held_until = NULL WHERE id = ? AND owner = ?`;
// A fact of each conversation that was ever moved, so that nobody has to look through events.
const NOTE = `
  INSERT INTO facts (owner, name, value) VALUES ('', 'moved:' || ?, ?) ON CONFLICT (owner, name) DO UPDATE SET value = excluded.value`;
const NOTED = "SELECT value FROM facts WHERE owner = '' AND name = 'moved:' || ?";
const SENT_SINCE = "SELECT 1 FROM events WHERE conv = ? AND seq > ? AND kind = 'turn.sent' ORDER BY seq LIMIT 1";

export function moveConversation(tx: Tx, owner: string, id: string, { place, name, by }: Move): Conversation {
  const ledger = Ledger.of(tx, owner, id);
  const { row } = ledger;
  if (row.place === place) return conversationOf(conversationRow(tx.db, owner, id));
  const { worker } = row;
  leavePlace(row, tx.monotonic);
  tx.db.run(MOVE, place, row.conv);
  tx.db.run(MOVE_LEASE, place, row.conv);
  tx.db.run(MOVE_SANDBOX, place, id, owner);
  const from = placeName(tx.db, row.place) ?? row.place;
  const seq = ledger.append('conversation.moved', null, { from, to: name, by });
  tx.db.run(NOTE, id, JSON.stringify({ seq, from }));
  ledger.save();
  if (worker !== null) dropIdleWorker(tx.db, worker);
  return conversationOf(conversationRow(tx.db, owner, id));
}

/** Where the conversation was moved from since its last turn was sent; null: it was not. */
export function lastMovedFrom(db: Database, { id, conv }: Pick<LeaseRow, 'id' | 'conv'>): string | null {
  const noted = db.one<{ value: string }>(NOTED, id);
  if (noted === undefined) return null;
  const { seq, from } = JSON.parse(noted.value);
  return db.one(SENT_SINCE, conv, seq) === undefined ? from : null;
}
