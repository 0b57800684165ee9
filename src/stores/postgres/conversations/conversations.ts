import { CONVERSATION_STATES, type Conversation, type TitleSource } from '../../../core/conversation.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { ConversationStore, NewConversation } from '../../../ports/store/conversations.ts';
import { NO_CHAIN } from '../../shared/chain.ts';
import { conversationTaken, keyTaken, noConversation } from '../../shared/ledger.ts';
import { type ConversationRow, conversationOf, flag, isName, limitsJson } from '../../shared/rows.ts';
import { wordsOf } from '../../shared/search.ts';
import { Collision } from '../../shared/verbs/steps.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { pageOfReadable } from './content.ts';
import { Ledger } from './ledger.ts';

const CONVERSATION = `
  SELECT c.no, c.owner, c.id, c.key, c.title, c.title_source AS "titleSource", c.agent, c.driver, c.sandbox, c.cwd, c.place,
    c.restore, c.limits, c.choices, c.parent, c.pinned, c.put_away AS "putAway", c.project, c.created_at AS "createdAt", c.updated_at AS "updatedAt",
    c.state, c.last_agent AS "lastAgent", l.head, l.history AS "historyCount", l.next_seq - 1 AS "lastSeq", l.pending AS open,
    (SELECT count(*) FROM permissions WHERE conv = c.no AND state = 'open') AS "openPermissions",
    (SELECT usage FROM totals WHERE conv = c.no) AS usage,
    (SELECT value FROM facts WHERE owner = '' AND name = 'log') AS "logId"
  FROM conversations c JOIN leases l ON l.conv = c.no`;
const BY_ID = `${CONVERSATION} WHERE c.id = $1`;
const BY_KEY = `${CONVERSATION} WHERE c.owner = $1 AND c.key = $2`;
const LISTED = `
  ${CONVERSATION} WHERE ('' || c.owner) = $1 AND c.updated_at >= $2 AND (c.updated_at, c.id) < ($3, $4)
    AND ($5::text IS NULL OR c.last_agent = $5) AND c.state = ANY($6::text[])
    AND ($7::int IS NULL OR c.put_away = $7) AND ($8::int IS NULL OR c.pinned = $8)
  ORDER BY c.updated_at DESC, c.id DESC LIMIT $9`;
const COUNT_PUT_AWAY = 'SELECT count(*) AS count FROM conversations WHERE owner = $1 AND put_away = 1';
/** A number for a new conversation. Its id makes the statement one for each of many (many.ts). */
const NEXT_NO = "SELECT $1::text AS id, nextval('conversations_no_seq') AS no";
const INSERT = `
  INSERT INTO conversations
    (owner, id, key, title, title_source, title_words, agent, last_agent, driver, sandbox, cwd, place, restore, limits, choices,
      created_at, updated_at, no, project)
  VALUES ($1, $2, $3, $4, $5, array_to_tsvector(string_to_array($6, ' ')), $7, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $16, $17)`;
const INSERT_LEASE = `
  INSERT INTO leases (conv, owner, driver, place, next_n, next_seq, chain, head, history, epoch, pending, worker, ready_at)
  VALUES ($1, $2, $3, $4, 1, 1, $5, 0, 0, 0, 0, NULL, NULL)`;
const INSERT_TOTALS = `
  INSERT INTO totals (conv, owner, completed, sessions, changes, usage) VALUES ($1, $2, 0, 0, 0, $3)`;

export async function findConversation(sql: Sql, owner: string, idOrKey: string): Promise<Conversation | null> {
  if (!isName(idOrKey)) return null;
  const byId = await sql.one<ConversationRow>(BY_ID, idOrKey);
  if (byId !== undefined && byId.owner === owner) return conversationOf(byId);
  return findByKey(sql, owner, idOrKey);
}

export async function findByKey(sql: Sql, owner: string, key: string): Promise<Conversation | null> {
  if (!isName(key)) return null;
  const row = await sql.one<ConversationRow>(BY_KEY, owner, key);
  return row === undefined ? null : conversationOf(row);
}

/** The owner's conversation by its id. Throws `not_found`. */
export async function conversationRow(sql: Sql, owner: string, id: string): Promise<ConversationRow> {
  const row = await sql.one<ConversationRow>(BY_ID, id);
  if (row === undefined || row.owner !== owner) throw noConversation();
  return row;
}

export async function countPutAway(sql: Sql, owner: string): Promise<number> {
  return (await sql.one<{ count: number }>(COUNT_PUT_AWAY, owner))?.count ?? 0;
}

type ListPage = Parameters<ConversationStore['listConversations']>[1];

/** From the index in the order of the list: a page costs the same however many there are, unless few of many fit the filter. */
export async function listConversations(sql: Sql, owner: string, page: ListPage): Promise<Conversation[]> {
  const {
    limit,
    agent = null,
    states = CONVERSATION_STATES,
    since = 0,
    before,
    until = Number.MAX_SAFE_INTEGER,
  } = page;
  if (states.length === 0 || limit <= 0) return [];
  const first = before !== undefined && before.updatedAt < until ? before : { updatedAt: until, id: '' };
  const fetch = ({ updatedAt, id }: Pick<ConversationRow, 'updatedAt' | 'id'> = first) =>
    sql.all<ConversationRow>(
      LISTED,
      owner,
      since,
      updatedAt,
      id,
      ...[agent, states, flag(page.putAway), flag(page.pinned), limit],
    );
  return pageOfReadable(sql, limit, fetch, conversationOf);
}

/** A new conversation without events. Throws `conflict` when its id is taken; when its key is, the transaction begins again and finds it. */
export async function insertConversation(
  tx: Tx,
  owner: string,
  spec: NewConversation,
  named: { title: string; source: TitleSource } | null,
): Promise<Ledger> {
  await tx.begun;
  const { sql, now } = tx;
  const { id, key, agent, driver, sandbox, cwd, place } = spec;
  const { title, source } = named ?? ({ title: '', source: 'none' } as const);
  const choices = JSON.stringify(spec.choices ?? {});
  const limits = limitsJson(spec.limitPerDay ?? null);
  const settings = [JSON.stringify(spec.restore), limits, choices];
  const { no } = (await sql.one<{ no: number }>(NEXT_NO, id)) as { no: number };
  const where = [driver, sandbox, cwd, place];
  sql.runUnlessTaken(
    takenConversation,
    INSERT,
    ...[
      owner,
      id,
      key,
      title,
      source,
      wordsOf(title).join(' '),
      agent,
      ...where,
      ...settings,
      now,
      no,
      spec.project ?? null,
    ],
  );
  sql.run(INSERT_LEASE, no, owner, driver, place, NO_CHAIN);
  sql.run(INSERT_TOTALS, no, owner, JSON.stringify(NO_USAGE));
  // As the statements have made it: nobody else sees it yet.
  return new Ledger(tx, {
    ...{ conv: no, id, owner, driver, place, next_n: 1, next_seq: 1, chain: NO_CHAIN, head: 0, history: 0, epoch: 0 },
    ...{
      pending: 0,
      worker: null,
      ready_at: null,
      state: 'idle',
      last_agent: agent,
      title,
      title_source: source,
      put_away: 0,
      pinned: 0,
      choices,
      limits,
      sandbox,
    },
  });
}

function takenConversation(index: string): Error {
  return index === 'conversations_key' ? new Collision() : conversationTaken();
}

/** Throws `conflict`. */
export async function checkKeyIsFree(sql: Sql, owner: string, key: string | null): Promise<void> {
  if (key !== null && (await findByKey(sql, owner, key)) !== null) throw keyTaken(key);
}
