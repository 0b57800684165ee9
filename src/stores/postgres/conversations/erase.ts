import type { EraseStored, Erasure } from '../../../ports/store/conversations.ts';
import { checkEndsWith, hasOpenTurns } from '../../shared/ledger.ts';
import { checkUnused, findErased, noteErasure, noteSandbox, outsideOf } from '../../shared/verbs/erase.ts';
import { checkTasksEnded, eraseTasks } from '../../shared/verbs/task-changes.ts';
import type { Tx } from '../server/access.ts';
import { carryOut, writer } from '../steps.ts';
import { LOCK_TASKS } from '../tasks/task-store.ts';
import { dropIdleWorker } from '../turns/leases.ts';
import { Ledger } from './ledger.ts';

const OF_CONV = 'turn IN (SELECT no FROM turns WHERE conv = $1)';
/**
 * Each takes the conversation's number; children before parents. The digest of every event stays, and with it the chain. What was deleted is
 * on the server's disk until it has cleaned up (VACUUM), and in its log and backups for longer.
 */
export const FORGET: readonly string[] = [
  'DELETE FROM permissions WHERE conv = $1',
  'DELETE FROM receipts WHERE conv = $1',
  'DELETE FROM told WHERE conv = $1',
  'DELETE FROM requeues WHERE conv = $1',
  'DELETE FROM mirrors WHERE session IN (SELECT no FROM sessions WHERE conv = $1)',
  'DELETE FROM sessions WHERE conv = $1',
  `DELETE FROM words WHERE ${OF_CONV}`,
  'DELETE FROM records WHERE conv = $1',
  `WITH gone AS (DELETE FROM content_links WHERE ${OF_CONV} RETURNING turn, content)
   DELETE FROM contents c WHERE c.no IN (SELECT content FROM gone) AND NOT EXISTS (
     SELECT 1 FROM content_links l JOIN turns t ON t.no = l.turn WHERE l.content = c.no AND t.conv <> $1)`,
  `UPDATE turns SET owner = '', request_id = NULL, request_hash = NULL, prompt = '[]', prompt_refs = 0, options = '{}', new_session = NULL,
     session_id = NULL, retry_of = NULL, sent = NULL, failure = NULL, delivered = NULL, replaces = NULL, replaced_by = NULL
   WHERE conv = $1`,
  `UPDATE events SET digest = sha256(convert_to(encode(salt, 'hex') || payload, 'UTF8')), payload = NULL, salt = NULL, owner = ''
   WHERE conv = $1 AND payload IS NOT NULL`,
  'DELETE FROM totals WHERE conv = $1',
  `UPDATE conversations SET owner = '', key = NULL, title = '', agent = NULL, last_agent = NULL, cwd = NULL, project = NULL, pinned = 0, put_away = 0, restore = '{}', parent = NULL, title_words = ''
   WHERE no = $1`,
  // No driver claims it, and its holder has lost the lease.
  `UPDATE leases SET owner = '', driver = 'erased', epoch = epoch + 1, pending = 0, worker = NULL, ready_at = NULL WHERE conv = $1`,
];

/** What was erased before is not refused, so that its sandbox can be deleted. */
export async function eraseConversation(
  tx: Tx,
  owner: string,
  id: string,
  options: EraseStored = {},
): Promise<Erasure> {
  const { sandbox } = options;
  const before = sandbox === undefined ? undefined : await carryOut(tx.sql, findErased(owner, id));
  if (before === undefined) return eraseNow(tx, owner, id, options);
  await carryOut(tx.sql, checkUnused(before.no, sandbox));
  await carryOut(tx.sql, noteSandbox(owner, id));
  return { cwd: null, sessions: [] };
}

async function eraseNow(tx: Tx, owner: string, id: string, { sandbox, head }: EraseStored): Promise<Erasure> {
  const { sql } = tx;
  const { row } = await Ledger.of(tx, owner, id);
  await carryOut(sql, checkUnused(row.conv, sandbox));
  if (row.pending > 0) throw hasOpenTurns();
  checkEndsWith(row, head);
  await carryOut(sql, checkTasksEnded(owner, id));
  const outside = await carryOut(sql, outsideOf(row.conv));
  for (const statement of FORGET) sql.run(statement, row.conv);
  if (row.worker !== null) dropIdleWorker(tx, row.worker);
  await writer(noteErasure)(tx, owner, id, sandbox !== undefined);
  // Last, because nobody else can change tasks from here until the end of the transaction.
  sql.run(LOCK_TASKS);
  await carryOut(sql, eraseTasks(owner, id));
  return outside;
}
