import type { Conversation } from '../../../core/conversation.ts';
import { isDamage, ThroughlineError } from '../../../core/errors.ts';
import { storedProcess } from '../../../core/process.ts';
import type { ErasedSession, EraseStored, Erasure, ToErase } from '../../../ports/store/conversations.ts';
import { checkEndsWith, noConversation } from '../../shared/ledger.ts';
import { parsed, type Row } from '../../shared/rows.ts';
import { eraseTasks } from '../../shared/verbs/task-changes.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { isStuckByDamage } from '../reading/inspect.ts';
import { carryOut } from '../steps.ts';
import { dropIdleWorker } from '../turns/leases.ts';
import { Ledger } from './ledger.ts';
import { forget, isErasedInPart, keptByDamage, markUnfinished } from './unfinished.ts';

/** The owner of what is left of an erased conversation. No real owner has this name. */
export const NOBODY = '';

/** Each takes the conversation's number. From then on nobody finds it. */
const HIDE = [
  'DELETE FROM totals WHERE conv = ?',
  `UPDATE conversations SET owner = '', key = NULL, title = '', agent = NULL, last_agent = NULL, cwd = NULL, restore = '{}', parent = NULL
     WHERE no = ?`,
  // No driver claims it, and its holder has lost the lease.
  `UPDATE leases SET owner = '', driver = 'erased', epoch = epoch + 1, pending = 0, worker = NULL, ready_at = NULL WHERE conv = ?`,
];
const FORGET_MOVE = "DELETE FROM facts WHERE owner = '' AND name = 'moved:' || ?";
const NOTE = 'INSERT INTO erasures (owner, conversation, at, sandbox) VALUES (?, ?, ?, ?)';
const NOTE_SANDBOX = 'UPDATE erasures SET sandbox = 1 WHERE owner = ? AND conversation = ?';
const NOTED = `
  SELECT c.no, c.id, c.sandbox, c.place, 1 AS erased FROM erasures e JOIN conversations c ON c.id = e.conversation
  WHERE e.owner = ? AND e.conversation = ?`;
// Without the columns that hold JSON: also a damaged conversation can be erased.
const TO_ERASE = 'SELECT no, id, sandbox, place, 0 AS erased FROM conversations WHERE owner = ?';
const BY_ID = `${TO_ERASE} AND id = ?`;
const BY_KEY = `${TO_ERASE} AND key = ?`;
const CWD = 'SELECT cwd FROM conversations WHERE no = ?';
const SESSIONS =
  'SELECT DISTINCT id, agent, storage, process FROM sessions WHERE conv = ? AND storage IS NOT NULL ORDER BY no';
/** Whether a path is the directory ?1 or inside of it. */
const inside = (path: string) => `(${path} = ?1 OR substr(${path}, 1, length(?1) + 1) = ?1 || '/')`;
const OTHERS = `SELECT 1 FROM conversations WHERE no <> ?2 AND owner <> '' AND ${inside('cwd')} LIMIT 1`;
const TASKS_THERE = `
  SELECT 1 FROM tasks WHERE state IN ('waiting', 'queued', 'running', 'asking')
    AND ${inside("json_extract(spec, '$.cwd')")} LIMIT 1`;

/** Hides the conversation in one transaction, and deletes all that was said in steps after it. */
export async function eraseConversation(
  access: Access,
  owner: string,
  id: string,
  options: EraseStored = {},
): Promise<Erasure> {
  const outside = await access
    .write((tx) => hide(tx, owner, id, options))
    .catch((error: unknown) => {
      if (!isDamage(error)) throw error;
      // Nobody can say then which sessions are left; that must not keep the rest from being erased.
      return access.write((tx) => hide(tx, owner, id, options, () => [])).catch(saying);
    });
  await forget(access, id);
  return outside;
}

function saying(error: unknown): never {
  throw isDamage(error) ? keptByDamage(error) : error;
}

/** What was erased before is not refused, so that its sandbox can be deleted, or the rest of it. */
function hide(tx: Tx, owner: string, id: string, options: EraseStored, sessions = sessionsOf): Erasure {
  const { sandbox } = options;
  const before = tx.db.one<ErasedRow>(NOTED, owner, id);
  if (before === undefined) return hideNow(tx, owner, id, options, sessions);
  if (sandbox === undefined && !isErasedInPart(tx.db, id)) throw noConversation();
  checkUnused(tx.db, before.no, sandbox);
  if (sandbox !== undefined) tx.db.run(NOTE_SANDBOX, owner, id);
  return { cwd: null, sessions: [] };
}

function hideNow(
  tx: Tx,
  owner: string,
  id: string,
  { sandbox, head }: EraseStored,
  sessions: typeof sessionsOf,
): Erasure {
  const { db, now } = tx;
  const { row } = Ledger.of(tx, owner, id);
  checkUnused(db, row.conv, sandbox);
  if (row.pending > 0 && !isStuckByDamage(db, row.conv)) {
    throw new ThroughlineError('conflict', 'The conversation has turns that have not ended.', {
      hint: 'Cancel them, and erase it when they have ended.',
    });
  }
  checkEndsWith(row, head);
  carryOut(db, eraseTasks(owner, id));
  const outside = { cwd: cwdOf(db, row.conv), sessions: sessions(db, row.conv) };
  for (const statement of HIDE) db.run(statement, row.conv);
  if (row.worker !== null) dropIdleWorker(db, row.worker);
  db.run(FORGET_MOVE, id);
  db.run(NOTE, owner, id, now, sandbox === undefined ? 0 : 1);
  markUnfinished(tx, id, 'erase', row.conv);
  tx.moved(id, null);
  return outside;
}

function cwdOf(db: Database, conv: number): string | null {
  return db.one<{ cwd: string | null }>(CWD, conv)?.cwd ?? null;
}

function sessionsOf(db: Database, conv: number): ErasedSession[] {
  const sessions = db.all<Row<ErasedSession, never, 'process'>>(SESSIONS, conv);
  return sessions.map((session) => ({ ...session, process: processOf(session.process) }));
}

/** Null also where it is damaged. */
function processOf(json: string | null): ErasedSession['process'] {
  try {
    return storedProcess(parsed(json));
  } catch {
    return null;
  }
}

/** Whoever works in a directory must not lose it. The error does not say who it is. */
function checkUnused(db: Database, conv: number, directory: string | undefined): void {
  if (directory === undefined) return;
  if (db.one(OTHERS, directory, conv) === undefined && db.one(TASKS_THERE, directory) === undefined) return;
  throw new ThroughlineError('refused', `Another conversation or task works in ${directory}.`, {
    hint: 'Erase the conversation without its sandbox, or erase the other one first.',
  });
}

interface ErasedRow extends Pick<Conversation, 'id' | 'sandbox' | 'place'> {
  readonly no: number;
  readonly erased: number;
}

/** Throws `storage_damaged` with what to do. */
export function findToErase(access: Access, owner: string, idOrKey: string): Promise<ToErase | null> {
  return access.read((db) => toErase(db, owner, idOrKey)).catch(saying);
}

function toErase(db: Database, owner: string, idOrKey: string): ToErase | null {
  if (!idOrKey.isWellFormed()) return null;
  const by = (sql: string) => db.one<ErasedRow>(sql, owner, idOrKey);
  const row = by(BY_ID) ?? by(BY_KEY) ?? by(NOTED);
  if (row === undefined) return null;
  const { id, sandbox, place, erased } = row;
  return { id, sandbox, place, isErased: erased === 1 && !isErasedInPart(db, id) };
}

/** The owner under which a conversation is found to check its chain. */
export function verifiedOwner(db: Database, owner: string, id: string): string {
  return db.one(NOTED, owner, id) === undefined ? owner : NOBODY;
}
