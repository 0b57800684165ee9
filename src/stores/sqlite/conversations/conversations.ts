import { CONVERSATION_STATES, type Conversation, type TitleSource } from '../../../core/conversation.ts';
import { isDamage } from '../../../core/errors.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { ConversationStore, NewConversation } from '../../../ports/store/conversations.ts';
import { NO_CHAIN } from '../../shared/chain.ts';
import { conversationTaken, keyTaken, noConversation } from '../../shared/ledger.ts';
import { pageOf, readable } from '../../shared/page.ts';
import { type ConversationRow, conversationOf, flag, isName, limitsJson } from '../../shared/rows.ts';
import { conversationNo as conversationNoOf } from '../../shared/verbs/reading.ts';
import type { Database } from '../file/database.ts';
import { storageFault, unlessDamaged } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';
import { reader } from '../steps.ts';
import { Ledger } from './ledger.ts';

const CONVERSATION = `
  SELECT c.no, c.owner, c.id, c.key, c.title, c.title_source AS "titleSource", c.agent, c.driver, c.sandbox, c.cwd, c.place,
    c.restore, c.limits, c.choices, c.parent, c.pinned, c.put_away AS "putAway", c.project, c.created_at AS "createdAt", c.updated_at AS "updatedAt",
    c.state, c.last_agent AS "lastAgent", l.head, l.history AS "historyCount", l.next_seq - 1 AS "lastSeq", l.pending AS open,
    (SELECT count(*) FROM permissions INDEXED BY permissions_asking WHERE conv = c.no AND state = 'open') AS "openPermissions",
    (SELECT usage FROM totals WHERE conv = c.no AND json_valid(usage)) AS usage,
    (SELECT value FROM facts WHERE owner = '' AND name = 'log') AS "logId"
  FROM conversations c JOIN leases l ON l.conv = c.no`;
const BY_ID = `${CONVERSATION} WHERE c.id = ?`;
const BY_NO = `${CONVERSATION} WHERE c.no = ?`;
const BY_KEY = `${CONVERSATION} WHERE c.owner = ? AND c.key = ?`;
const FIRST = 'ORDER BY updatedAt DESC, id DESC';
/** The index is named, so that none is read that would have to be sorted. */
const IN_LIST = `
  WHERE c.owner = ?1 AND c.updated_at >= ?2 AND (c.updated_at, c.id) < (?3, ?4) AND (?5 IS NULL OR c.last_agent = ?5)
    AND (?6 IS NULL OR c.put_away = ?6) AND (?7 IS NULL OR c.pinned = ?7)`;
const LISTED = `
  ${CONVERSATION.replace('conversations c ', 'conversations c INDEXED BY conversations_listed ')} ${IN_LIST}`;
/** Only what the index has; and without the index, which may be damaged itself. */
const NAMES = ['INDEXED BY conversations_listed', 'NOT INDEXED'].map(
  (how) => `SELECT c.no, c.updated_at AS "updatedAt", c.id FROM conversations c ${how} ${IN_LIST}`,
);
const COUNT = 'SELECT count(*) AS count FROM conversations WHERE owner = ? AND put_away = 1';
const INSERT = `
  INSERT INTO conversations
    (owner, id, key, title, title_source, agent, last_agent, driver, sandbox, cwd, project, place, restore, limits, choices,
      created_at, updated_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const INSERT_LEASE = `
  INSERT INTO leases (conv, owner, driver, place, next_n, next_seq, chain, head, history, epoch, pending, worker, ready_at)
  VALUES (?, ?, ?, ?, 1, 1, ?, 0, 0, 0, 0, NULL, NULL)`;
const INSERT_TOTALS = 'INSERT INTO totals (conv, owner, completed, sessions, changes, usage) VALUES (?, ?, 0, 0, 0, ?)';

export function findConversation(db: Database, owner: string, idOrKey: string): Conversation | null {
  const byId = db.one<ConversationRow>(BY_ID, idOrKey);
  if (byId !== undefined && byId.owner === owner) return conversationOf(byId);
  return findByKey(db, owner, idOrKey);
}

export function findByKey(db: Database, owner: string, key: string): Conversation | null {
  if (!isName(key)) return null;
  const row = db.one<ConversationRow>(BY_KEY, owner, key);
  return row === undefined ? null : conversationOf(row);
}

export const conversationNo = reader(conversationNoOf);

/** The owner's conversation by its id. Throws `not_found`. */
export function conversationRow(db: Database, owner: string, id: string): ConversationRow {
  const row = db.one<ConversationRow>(BY_ID, id);
  if (row === undefined || row.owner !== owner) throw noConversation();
  return row;
}

/** The index has only those that are put away. It may be damaged. */
export function countPutAway(db: Database, owner: string): number {
  const count = (select: string) => db.one<{ count: number }>(select, owner)?.count ?? 0;
  return unlessDamaged(() => count(COUNT), null) ?? count(COUNT.replace('conversations', 'conversations NOT INDEXED'));
}

type ListPage = Parameters<ConversationStore['listConversations']>[1];

/**
 * Those of each state come from the index in the order of the list, and SQLite merges them as they are read. So a page costs the same
 * however many there are; `state IN (…)` would read and sort them all. Only an agent that has few of many is looked for in the index.
 */
export function listConversations(db: Database, owner: string, page: ListPage): Conversation[] {
  const { limit } = page;
  const all = () => readable(db, listed<ConversationRow>(db, LISTED, owner, page), conversationOf);
  const ways = [all, ...NAMES.map((select) => () => listOneByOne(db, listed(db, select, owner, page)))];
  for (const [tried, way] of ways.entries()) {
    try {
      return pageOf(way(), (one) => one, { limit });
    } catch (error) {
      if (!isDamage(storageFault(error)) || tried === ways.length - 1) throw error;
      db.onDamage(error);
    }
  }
  return [];
}

function listed<Row>(db: Database, select: string, owner: string, page: ListPage): Iterable<Row> {
  const { agent = null, states = CONVERSATION_STATES, since = 0 } = page;
  if (states.length === 0) return [];
  const { updatedAt, id } = firstBefore(page);
  const parts = states.map((_, index) => `${select} AND c.state = ?${index + 8}`);
  return db.each<Row>(
    `${parts.join(' UNION ALL ')} ${FIRST}`,
    owner,
    since,
    updatedAt,
    id,
    ...[agent, flag(page.putAway), flag(page.pinned)],
    ...states,
  );
}

/** A damaged page ends the statement that meets it. So each conversation is read by itself, and what cannot be read is left out. */
function* listOneByOne(db: Database, names: Iterable<{ no: number }>): Generator<Conversation> {
  for (const { no } of names) {
    const row = unlessDamaged(() => db.one<ConversationRow>(BY_NO, no), undefined);
    if (row !== undefined) yield* readable(db, [row], conversationOf);
  }
}

/** The earlier one of where the last page ended and the end of the time. */
function firstBefore({ before, until = Number.MAX_SAFE_INTEGER }: ListPage): { updatedAt: number; id: string } {
  return before !== undefined && before.updatedAt < until ? before : { updatedAt: until, id: '' };
}

/** A new conversation without events. Throws `conflict` when its id or key is taken. */
export function insertConversation(
  tx: Tx,
  owner: string,
  spec: NewConversation,
  named: { title: string; source: TitleSource } | null,
): Ledger {
  const { db, now } = tx;
  if (db.one(BY_ID, spec.id) !== undefined) throw conversationTaken();
  checkKeyIsFree(db, owner, spec.key);
  const { no } = db.run(
    INSERT,
    owner,
    spec.id,
    spec.key,
    named?.title ?? '',
    named?.source ?? 'none',
    spec.agent,
    spec.agent,
    spec.driver,
    spec.sandbox,
    spec.cwd,
    spec.project ?? null,
    spec.place,
    JSON.stringify(spec.restore),
    limitsJson(spec.limitPerDay ?? null),
    JSON.stringify(spec.choices ?? {}),
    now,
    now,
  );
  db.run(INSERT_LEASE, no, owner, spec.driver, spec.place, NO_CHAIN);
  db.run(INSERT_TOTALS, no, owner, JSON.stringify(NO_USAGE));
  return Ledger.byNo(tx, no);
}

/** Throws `conflict`. */
export function checkKeyIsFree(db: Database, owner: string, key: string | null): void {
  if (key !== null && findByKey(db, owner, key) !== null) throw keyTaken(key);
}
