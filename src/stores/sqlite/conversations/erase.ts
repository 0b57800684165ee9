import type { Conversation } from '../../../core/conversation.ts';
import { ThroughlineError } from '../../../core/errors.ts';
import type { ErasedSession, Erasure } from '../../../ports/store/conversations.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { eraseTasks } from '../tasks/erase-tasks.ts';
import { dropIdleWorker } from '../turns/leases.ts';
import { payloadDigest } from './chain.ts';
import { Ledger } from './ledger.ts';
import { parsed, type Row } from './rows.ts';

/** The owner of what is left of an erased conversation. No real owner has this name. */
export const NOBODY = '';

const SAID = 'SELECT no, payload, salt FROM events WHERE conv = ? AND seq > ? ORDER BY seq LIMIT 500';
const FORGET_EVENT = "UPDATE events SET payload = NULL, salt = NULL, digest = ?, owner = '' WHERE no = ?";
const TURNS = 'SELECT no FROM turns WHERE conv = ?';
const CONTENTS = `SELECT DISTINCT content FROM content_links WHERE turn IN (${TURNS})`;
const IF_UNUSED = 'DELETE FROM contents WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM content_links WHERE content = ?1)';
/** Each takes the conversation's number. Children before parents. */
const FORGET = [
  `DELETE FROM content_links WHERE turn IN (${TURNS})`,
  `DELETE FROM words WHERE rowid IN (${TURNS})`,
  'DELETE FROM records WHERE conv = ?',
  'DELETE FROM permissions WHERE conv = ?',
  'DELETE FROM receipts WHERE conv = ?',
  'DELETE FROM mirrors WHERE session IN (SELECT no FROM sessions WHERE conv = ?)',
  'DELETE FROM sessions WHERE conv = ?',
  'DELETE FROM totals WHERE conv = ?',
  `UPDATE turns SET owner = '', request_id = NULL, request_hash = NULL, prompt = '[]', prompt_refs = 0, options = '{}',
     session_id = NULL, retry_of = NULL, sent = NULL, failure = NULL WHERE conv = ?`,
  `UPDATE conversations SET owner = '', key = NULL, title = '', agent = NULL, cwd = NULL, restore = '{}', parent = NULL
     WHERE no = ?`,
  // No driver claims it, and its holder has lost the lease.
  `UPDATE leases SET owner = '', driver = 'erased', epoch = epoch + 1, worker = NULL, ready_at = NULL WHERE conv = ?`,
];
/** The index keeps no texts, so it cannot delete the words of one: rewriting it removes them. */
const REWRITE_WORDS = "INSERT INTO words (words) VALUES ('optimize')";
const NOTE = 'INSERT INTO erasures (owner, conversation, at, sandbox) VALUES (?, ?, ?, ?)';
const NOTE_SANDBOX = 'UPDATE erasures SET sandbox = 1 WHERE owner = ? AND conversation = ?';
const NOTED = `
  SELECT c.no, c.id, c.sandbox, c.place FROM erasures e JOIN conversations c ON c.id = e.conversation
  WHERE e.owner = ? AND e.conversation = ?`;
const CWD = 'SELECT cwd FROM conversations WHERE no = ?';
const SESSIONS =
  'SELECT DISTINCT id, agent, storage, process FROM sessions WHERE conv = ? AND storage IS NOT NULL ORDER BY no';
/** Whether a path is the directory ?1 or inside of it. */
const inside = (path: string) => `(${path} = ?1 OR substr(${path}, 1, length(?1) + 1) = ?1 || '/')`;
const OTHERS = `SELECT 1 FROM conversations WHERE no <> ?2 AND owner <> '' AND ${inside('cwd')} LIMIT 1`;
const TASKS_THERE = `
  SELECT 1 FROM tasks WHERE state IN ('waiting', 'queued', 'running', 'asking')
    AND ${inside("json_extract(spec, '$.cwd')")} LIMIT 1`;

/** Deletes all that was said, in one transaction. The digest of every event stays, and with it the chain. */
export function eraseConversation(tx: Tx, owner: string, id: string, { sandbox }: { sandbox?: string } = {}): Erasure {
  const before = sandbox === undefined ? undefined : tx.db.one<ErasedRow>(NOTED, owner, id);
  if (before === undefined) return eraseNow(tx, owner, id, sandbox);
  checkUnused(tx.db, before.no, sandbox);
  tx.db.run(NOTE_SANDBOX, owner, id);
  return { cwd: null, sessions: [] };
}

function eraseNow(tx: Tx, owner: string, id: string, sandbox: string | undefined): Erasure {
  const { db, now } = tx;
  const { row } = Ledger.of(tx, owner, id);
  checkUnused(db, row.conv, sandbox);
  if (row.pending > 0) {
    throw new ThroughlineError('conflict', 'The conversation has turns that have not ended.', {
      hint: 'Cancel them, and erase it when they have ended.',
    });
  }
  eraseTasks(tx, owner, id);
  const outside = outsideOf(db, row.conv);
  forgetEvents(db, row.conv);
  const contents = db.all<{ content: number }>(CONTENTS, row.conv);
  for (const statement of FORGET) db.run(statement, row.conv);
  for (const { content } of contents) db.run(IF_UNUSED, content);
  db.run(REWRITE_WORDS);
  if (row.worker !== null) dropIdleWorker(db, row.worker);
  db.run(NOTE, owner, id, now, sandbox === undefined ? 0 : 1);
  tx.moved(id, null);
  return outside;
}

function outsideOf(db: Database, conv: number): Erasure {
  const sessions = db.all<Row<ErasedSession, never, 'process'>>(SESSIONS, conv);
  return {
    cwd: db.one<{ cwd: string | null }>(CWD, conv)?.cwd ?? null,
    sessions: sessions.map((session) => ({ ...session, process: parsed(session.process) })),
  };
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
}

export function findErased(db: Database, owner: string, id: string): Omit<ErasedRow, 'no'> | null {
  const row = db.one<ErasedRow>(NOTED, owner, id);
  return row === undefined ? null : { id: row.id, sandbox: row.sandbox, place: row.place };
}

function forgetEvents(db: Database, conv: number): void {
  for (let after = 0; ; after += 500) {
    const rows = db.all<{ no: number; payload: string | null; salt: Uint8Array | null }>(SAID, conv, after);
    for (const { no, payload, salt } of rows) {
      if (payload !== null && salt !== null) db.run(FORGET_EVENT, Buffer.from(payloadDigest(salt, payload), 'hex'), no);
    }
    if (rows.length < 500) return;
  }
}

/** The owner under which a conversation is found to check its chain. */
export function verifiedOwner(db: Database, owner: string, id: string): string {
  return db.one(NOTED, owner, id) === undefined ? owner : NOBODY;
}
