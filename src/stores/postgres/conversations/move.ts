import type { Conversation } from '../../../core/conversation.ts';
import type { Move } from '../../../ports/store/conversations.ts';
import { type LeaseRow, leavePlace } from '../../shared/ledger.ts';
import { conversationOf } from '../../shared/rows.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { dropIdleWorker, placeName } from '../turns/leases.ts';
import { conversationRow } from './conversations.ts';
import { Ledger } from './ledger.ts';

const MOVE = 'UPDATE conversations SET place = $1, sandbox = id, cwd = NULL WHERE no = $2';
const MOVE_LEASE = 'UPDATE leases SET place = $1 WHERE conv = $2';
// Its own one is made again where it is now.
const MOVE_SANDBOX = `
  UPDATE sandboxes SET place = $1, opened_at = NULL, opened_by = NULL, rested_at = NULL, setup = '[]', disk = NULL, disk_bytes = 0,
    holder = NULL, held_until = NULL WHERE id = $2 AND owner = $3`;
// A fact of each conversation that was ever moved, so that nobody has to look through events.
const NOTE = `
  INSERT INTO facts (owner, name, value) VALUES ('', 'moved:' || $1, $2) ON CONFLICT (owner, name) DO UPDATE SET value = excluded.value`;
const NOTED = "SELECT value FROM facts WHERE owner = '' AND name = 'moved:' || $1";
const SENT_SINCE = "SELECT 1 FROM events WHERE conv = $1 AND seq > $2 AND kind = 'turn.sent' ORDER BY seq LIMIT 1";

export async function moveConversation(
  tx: Tx,
  owner: string,
  id: string,
  { place, name, by }: Move,
): Promise<Conversation> {
  const ledger = await Ledger.of(tx, owner, id);
  const { row } = ledger;
  if (row.place === place) return conversationOf(await conversationRow(tx.sql, owner, id));
  const { worker } = row;
  leavePlace(row, tx.monotonic);
  tx.sql.run(MOVE, place, row.conv);
  tx.sql.run(MOVE_LEASE, place, row.conv);
  tx.sql.run(MOVE_SANDBOX, place, id, owner);
  const from = (await placeName(tx.sql, row.place)) ?? row.place;
  const seq = ledger.append('conversation.moved', null, { from, to: name, by });
  tx.sql.run(NOTE, id, JSON.stringify({ seq, from }));
  await ledger.save();
  if (worker !== null) dropIdleWorker(tx, worker);
  return conversationOf(await conversationRow(tx.sql, owner, id));
}

/** Where the conversation was moved from since its last turn was sent; null: it was not. */
export async function lastMovedFrom(sql: Sql, { id, conv }: Pick<LeaseRow, 'id' | 'conv'>): Promise<string | null> {
  const noted = await sql.one<{ value: string }>(NOTED, id);
  if (noted === undefined) return null;
  const { seq, from } = JSON.parse(noted.value);
  return (await sql.one(SENT_SINCE, conv, seq)) === undefined ? from : null;
}
