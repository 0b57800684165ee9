import type { Conversation } from '../../../core/conversation.ts';
import { ThroughlineError } from '../../../core/errors.ts';
import { storedProcess } from '../../../core/process.ts';
import type { TaskSpec } from '../../../core/tasks/task.ts';
import type { ErasedSession, EraseStored, Erasure, ToErase } from '../../../ports/store/conversations.ts';
import { checkEndsWith } from '../../shared/ledger.ts';
import { isName, parsed, type Row } from '../../shared/rows.ts';
import { checkTasksEnded, eraseTasks } from '../../shared/verbs/task-changes.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { carryOut } from '../steps.ts';
import { LOCK_TASKS } from '../tasks/task-store.ts';
import { dropIdleWorker } from '../turns/leases.ts';
import { Ledger } from './ledger.ts';

/** The owner of what is left of an erased conversation. No real owner has this name. */
const NOBODY = '';

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
  `UPDATE conversations SET owner = '', key = NULL, title = '', agent = NULL, last_agent = NULL, cwd = NULL, restore = '{}', parent = NULL, title_words = ''
   WHERE no = $1`,
  // No driver claims it, and its holder has lost the lease.
  `UPDATE leases SET owner = '', driver = 'erased', epoch = epoch + 1, pending = 0, worker = NULL, ready_at = NULL WHERE conv = $1`,
];
const FORGET_MOVE = "DELETE FROM facts WHERE owner = '' AND name = 'moved:' || $1";
const NOTE = 'INSERT INTO erasures (owner, conversation, at, sandbox) VALUES ($1, $2, $3, $4)';
const NOTE_SANDBOX = 'UPDATE erasures SET sandbox = 1 WHERE owner = $1 AND conversation = $2';
const NOTED = `
  SELECT c.no, c.id, c.sandbox, c.place, 1 AS erased FROM erasures e JOIN conversations c ON c.id = e.conversation
  WHERE e.owner = $1 AND e.conversation = $2`;
const TO_ERASE = 'SELECT no, id, sandbox, place, 0 AS erased FROM conversations WHERE owner = $1';
const BY_ID = `${TO_ERASE} AND id = $2`;
const BY_KEY = `${TO_ERASE} AND key = $2`;
const CWD = 'SELECT cwd FROM conversations WHERE no = $1';
const SESSIONS =
  'SELECT id, agent, storage, process FROM sessions WHERE conv = $1 GROUP BY id, agent, storage, process ORDER BY min(no)';
const OTHERS = `
  SELECT 1 FROM conversations WHERE no <> $2 AND owner <> '' AND (cwd = $1 OR starts_with(cwd, $1 || '/')) LIMIT 1`;
const OPEN_TASKS = "SELECT spec FROM tasks WHERE state IN ('waiting', 'queued', 'running', 'asking')";

/** What was erased before is not refused, so that its sandbox can be deleted. */
export async function eraseConversation(
  tx: Tx,
  owner: string,
  id: string,
  options: EraseStored = {},
): Promise<Erasure> {
  const { sandbox } = options;
  const before = sandbox === undefined ? undefined : await tx.sql.one<ErasedRow>(NOTED, owner, id);
  if (before === undefined) return eraseNow(tx, owner, id, options);
  await checkUnused(tx.sql, before.no, sandbox);
  tx.sql.run(NOTE_SANDBOX, owner, id);
  return { cwd: null, sessions: [] };
}

async function eraseNow(tx: Tx, owner: string, id: string, { sandbox, head }: EraseStored): Promise<Erasure> {
  const { sql, now } = tx;
  const { row } = await Ledger.of(tx, owner, id);
  await checkUnused(sql, row.conv, sandbox);
  if (row.pending > 0) {
    throw new ThroughlineError('conflict', 'The conversation has turns that have not ended.', {
      hint: 'Cancel them, and erase it when they have ended.',
    });
  }
  checkEndsWith(row, head);
  await carryOut(sql, checkTasksEnded(owner, id));
  const outside = await outsideOf(sql, row.conv);
  for (const statement of FORGET) sql.run(statement, row.conv);
  if (row.worker !== null) dropIdleWorker(tx, row.worker);
  sql.run(FORGET_MOVE, id);
  sql.run(NOTE, owner, id, now, sandbox === undefined ? 0 : 1);
  // Last: nobody else changes tasks until the transaction ends.
  sql.run(LOCK_TASKS);
  await carryOut(sql, eraseTasks(owner, id));
  tx.moved(id);
  return outside;
}

async function outsideOf(sql: Sql, conv: number): Promise<Erasure> {
  const sessions = await sql.all<Row<ErasedSession, never, 'process'>>(SESSIONS, conv);
  return {
    cwd: (await sql.one<{ cwd: string | null }>(CWD, conv))?.cwd ?? null,
    sessions: sessions.map((session) => ({ ...session, process: storedProcess(parsed(session.process)) })),
  };
}

/** Whoever works in a directory must not lose it. The error does not say who it is. */
async function checkUnused(sql: Sql, conv: number, directory: string | undefined): Promise<void> {
  if (directory === undefined) return;
  const isThere = ({ spec }: { spec: string }) => {
    const { cwd } = JSON.parse(spec) as Pick<TaskSpec, 'cwd'>;
    return cwd === directory || cwd?.startsWith(`${directory}/`);
  };
  const isUsed = (await sql.one(OTHERS, directory, conv)) !== undefined;
  if (!isUsed && !(await sql.all<{ spec: string }>(OPEN_TASKS)).some(isThere)) return;
  throw new ThroughlineError('refused', `Another conversation or task works in ${directory}.`, {
    hint: 'Erase the conversation without its sandbox, or erase the other one first.',
  });
}

interface ErasedRow extends Pick<Conversation, 'id' | 'sandbox' | 'place'> {
  readonly no: number;
  readonly erased: number;
}

export async function findToErase(sql: Sql, owner: string, idOrKey: string): Promise<ToErase | null> {
  if (!isName(idOrKey)) return null;
  const by = (text: string) => sql.one<ErasedRow>(text, owner, idOrKey);
  const row = (await by(BY_ID)) ?? (await by(BY_KEY)) ?? (await by(NOTED));
  if (row === undefined) return null;
  const { id, sandbox, place, erased } = row;
  return { id, sandbox, place, isErased: erased === 1 };
}

/** The owner under which a conversation is found to check its chain. */
export async function verifiedOwner(sql: Sql, owner: string, id: string): Promise<string> {
  return (await sql.one(NOTED, owner, id)) === undefined ? owner : NOBODY;
}
