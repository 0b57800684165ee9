import { type Conversation, type TitleSource, titleWins } from '../../../core/conversation.ts';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Budget } from '../../../core/limits/budget.ts';
import { type Prompt, titleOf } from '../../../core/turn/content.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { ConversationStore, NewConversation } from '../../../ports/store/conversations.ts';
import { type Database, LIMIT } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { pageOf } from '../reading/page.ts';
import { NO_CHAIN } from './chain.ts';
import { Ledger, noConversation } from './ledger.ts';
import { CONVERSATION, type ConversationRow, conversationOf } from './rows.ts';

const BY_ID = `${CONVERSATION} WHERE c.id = ?`;
const BY_KEY = `${CONVERSATION} WHERE c.owner = ? AND c.key = ?`;
const PAGE = `${CONVERSATION} WHERE c.owner = ? ORDER BY c.updated_at DESC, c.id DESC ${LIMIT}`;
const NEXT_PAGE = `
  ${CONVERSATION} WHERE c.owner = ? AND (c.updated_at, c.id) < (?, ?) ORDER BY c.updated_at DESC, c.id DESC ${LIMIT}`;
const INSERT = `
  INSERT INTO conversations
    (owner, id, key, title, title_source, agent, driver, sandbox, cwd, place, restore, limits, created_at, updated_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const INSERT_LEASE = `
  INSERT INTO leases (conv, owner, driver, place, next_n, next_seq, chain, head, history, epoch, pending, worker, ready_at)
  VALUES (?, ?, ?, ?, 1, 1, ?, 0, 0, 0, 0, NULL, NULL)`;
const INSERT_TOTALS = 'INSERT INTO totals (conv, owner, completed, sessions, changes, usage) VALUES (?, ?, 0, 0, 0, ?)';
const TITLE = 'SELECT title, title_source FROM conversations WHERE no = ?';
const SET_LIMITS = 'UPDATE conversations SET limits = ? WHERE no = ?';
const SET_TITLE = 'UPDATE conversations SET title = ?, title_source = ? WHERE no = ?';

export function findConversation(db: Database, owner: string, idOrKey: string): Conversation | null {
  const byId = db.one<ConversationRow>(BY_ID, idOrKey);
  if (byId !== undefined && byId.owner === owner) return conversationOf(byId);
  return findByKey(db, owner, idOrKey);
}

export function findByKey(db: Database, owner: string, key: string): Conversation | null {
  // SQLite reads every unpaired surrogate as U+FFFD, and would find what has that in its name. So in all searches by a name.
  if (!key.isWellFormed()) return null;
  const row = db.one<ConversationRow>(BY_KEY, owner, key);
  return row === undefined ? null : conversationOf(row);
}

/** The number of the owner's conversation inside the database. Throws `not_found`. */
export function conversationNo(db: Database, owner: string, id: string): number {
  return conversationRow(db, owner, id).no;
}

/** The owner's conversation by its id. Throws `not_found`. */
export function conversationRow(db: Database, owner: string, id: string): ConversationRow {
  const row = db.one<ConversationRow>(BY_ID, id);
  if (row === undefined || row.owner !== owner) throw noConversation();
  return row;
}

type ListPage = Parameters<ConversationStore['listConversations']>[1];

export function listConversations(db: Database, owner: string, { limit, before }: ListPage): Conversation[] {
  const most = Math.max(0, limit);
  const rows =
    before === undefined
      ? db.each<ConversationRow>(PAGE, owner, most)
      : db.each<ConversationRow>(NEXT_PAGE, owner, before.updatedAt, before.id, most);
  return pageOf(rows, conversationOf);
}

export function ensureConversation(tx: Tx, owner: string, spec: NewConversation) {
  const known = spec.key === null ? null : findByKey(tx.db, owner, spec.key);
  if (known !== null) return { conversation: known, created: false };
  const ledger = insertConversation(
    tx,
    owner,
    spec,
    spec.title === null ? null : { title: spec.title, source: 'caller' },
  );
  ledger.append('conversation.created', null, { key: spec.key, agent: spec.agent, cwd: spec.cwd });
  ledger.save();
  return { conversation: conversationOf(conversationRow(tx.db, owner, spec.id)), created: true };
}

/** A new conversation without events. Throws `conflict` when its id or key is taken. */
export function insertConversation(
  tx: Tx,
  owner: string,
  spec: NewConversation,
  named: { title: string; source: TitleSource } | null,
): Ledger {
  const { db, now } = tx;
  if (db.one(BY_ID, spec.id) !== undefined)
    throw new ThroughlineError('conflict', 'A conversation with this id exists already.');
  checkKeyIsFree(db, owner, spec.key);
  const { no } = db.run(
    INSERT,
    owner,
    spec.id,
    spec.key,
    named?.title ?? '',
    named?.source ?? 'none',
    spec.agent,
    spec.driver,
    spec.sandbox,
    spec.cwd,
    spec.place,
    JSON.stringify(spec.restore),
    limitsJson(spec.limitPerDay ?? null),
    now,
    now,
  );
  db.run(INSERT_LEASE, no, owner, spec.driver, spec.place, NO_CHAIN);
  db.run(INSERT_TOTALS, no, owner, JSON.stringify(NO_USAGE));
  return Ledger.byNo(tx, no);
}

/** Throws `conflict`. */
export function checkKeyIsFree(db: Database, owner: string, key: string | null): void {
  if (key === null || findByKey(db, owner, key) === null) return;
  throw new ThroughlineError('conflict', `A conversation "${key}" exists already.`, { hint: 'Use another key.' });
}

export function setTitle(tx: Tx, owner: string, id: string, title: string, source: TitleSource): Conversation {
  const ledger = Ledger.of(tx, owner, id);
  if (giveTitle(ledger, title, source)) {
    ledger.touch();
    ledger.save();
  }
  return conversationOf(conversationRow(tx.db, owner, id));
}

export function setLimitPerDay(tx: Tx, owner: string, id: string, limit: Budget | null): Conversation {
  tx.db.run(SET_LIMITS, limitsJson(limit), conversationNo(tx.db, owner, id));
  return conversationOf(conversationRow(tx.db, owner, id));
}

function limitsJson(perDay: Budget | null): string {
  return JSON.stringify(perDay === null ? {} : { perDay });
}

/** The first prompt names a conversation that nobody has named. */
export function titleFromPrompt(ledger: Ledger, prompt: Prompt): void {
  const title = titleOf(prompt);
  if (title !== '') giveTitle(ledger, title, 'prompt');
}

function giveTitle(ledger: Ledger, title: string, source: TitleSource): boolean {
  const { tx, row } = ledger;
  const now = tx.db.one<{ title: string; title_source: TitleSource }>(TITLE, row.conv);
  if (now === undefined || !titleWins(source, now.title_source)) return false;
  if (now.title === title && now.title_source === source) return false;
  tx.db.run(SET_TITLE, title, source, row.conv);
  ledger.append('conversation.titled', null, { title, source });
  return true;
}
