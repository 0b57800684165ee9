import { createHash, randomUUIDv7 } from 'node:crypto';
import type { Conversation } from '../../../core/conversation.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { ImportedHistory, NewConversation } from '../../../ports/store/conversations.ts';
import type { Json } from '../../shared/content.ts';
import { conversationOf, RECORD, type RecordRow } from '../../shared/rows.ts';
import { searchedTexts, wordsOf } from '../../shared/search.ts';
import { checkForkPoint, checkOrder, endedTurn } from '../../shared/turns.ts';
import type { Tx } from '../server/access.ts';
import { countSession, countTurns } from '../turns/totals.ts';
import { linkContents, readRecord, storeValue } from './content.ts';
import { checkKeyIsFree, conversationRow, insertConversation } from './conversations.ts';
import type { Ledger } from './ledger.ts';

// In one transaction, however long: others can write meanwhile.

const PAGE = 100;
const COPIED = `${RECORD} WHERE r.conv = $1 AND r.n > $2 AND r.n <= $3 ORDER BY r.n LIMIT ${PAGE}`;
const SET_PARENT = 'UPDATE conversations SET parent = $1 WHERE no = $2';
const INSERT_TURN = `
  INSERT INTO turns (owner, conv, n, id, queued_seq, state, agent, prompt, prompt_refs, options, attempt, session_id,
    was_sent, cancel_requested, failure, usage, created_at, started_at, ended_at, imported, recovered)
  VALUES ($1, $2, $3, $4, 1, $5, $6, $7, $8, '{}', 1, $9, 1, 0, $10, $11, $12, $12, $13, 1, $14) RETURNING no`;
const INSERT_RECORD = `
  INSERT INTO records (turn, owner, conv, n, place, body, body_refs, unknown_before) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;
const INSERT_WORDS =
  "INSERT INTO words (turn, owner, lexemes) VALUES ($1, $2, array_to_tsvector(string_to_array($3, ' ')))";
const COPY_LINKS = `
  INSERT INTO content_links (turn, content, owner) SELECT $1, content, owner FROM content_links WHERE turn = $2`;
const INSERT_SESSION = `
  INSERT INTO sessions (owner, conv, ref, id, agent, storage, origin, parent, watermark, dropped, state, turns, usage, opened_at,
    used_at, used_seq)
  VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8, 0, 'closed', 0, $9, $10, $10, 0)`;

/** Copies rows; long content is shared. The parent's hash is over the JSON of the records, one a line. */
export async function fork(
  tx: Tx,
  owner: string,
  source: string,
  n: number,
  spec: NewConversation,
): Promise<Conversation> {
  const parent = await conversationRow(tx.sql, owner, source);
  checkForkPoint(n, parent.head);
  const named = {
    title: spec.title ?? parent.title,
    source: spec.title === null ? parent.titleSource : 'caller',
  } as const;
  await checkKeyIsFree(tx.sql, owner, spec.key);
  const ledger = await insertConversation(tx, owner, spec, named);
  const hash = createHash('sha256');
  for (let after = 0, rows: RecordRow[] = []; after === 0 || rows.length === PAGE; after = rows.at(-1)?.n ?? n) {
    rows = await tx.sql.all<RecordRow>(COPIED, parent.no, after, n);
    const records: TurnRecord[] = [];
    for (const row of rows) {
      const record = await readRecord(tx.sql, row);
      hash.update(`${JSON.stringify(record)}\n`);
      const [prompt, body] = [
        { json: row.prompt, refs: row.prompt_refs },
        { json: row.body, refs: row.body_refs },
      ];
      const no = await addEnded(ledger, record, prompt, body);
      if (row.prompt_refs + row.body_refs > 0) tx.sql.run(COPY_LINKS, no, row.turn);
      records.push(record);
    }
    // Its turns ran in the parent's sessions, which it never uses: it has no session yet.
    await countTurns(
      ledger,
      records.map((record) => endedTurn(record, null)),
    );
    if (rows.length === 0) break;
  }
  const origin = { conversation: source, n, hash: hash.digest('hex') };
  tx.sql.run(SET_PARENT, JSON.stringify(origin), ledger.row.conv);
  ledger.row.next_n = n + 1;
  ledger.append('conversation.forked', null, origin);
  await ledger.save();
  return conversationOf(await conversationRow(tx.sql, owner, spec.id));
}

export async function importConversation(
  tx: Tx,
  owner: string,
  spec: NewConversation,
  { records, sessions }: ImportedHistory,
): Promise<Conversation> {
  checkOrder(records);
  const named = spec.title === null ? null : ({ title: spec.title, source: 'caller' } as const);
  await checkKeyIsFree(tx.sql, owner, spec.key);
  const ledger = await insertConversation(tx, owner, spec, named);
  for (const record of records) await addImported(ledger, record);
  await countTurns(
    ledger,
    records.map((record) => endedTurn(record, record.sessionId)),
  );
  importSessions(ledger, sessions);
  ledger.row.next_n = ledger.row.head + 1;
  ledger.append('conversation.imported', null, { turns: records.length });
  await ledger.save();
  return conversationOf(await conversationRow(tx.sql, owner, spec.id));
}

/** The ids come from the export; `parent` is the id of another session in it. */
function importSessions(ledger: Ledger, sessions: ImportedHistory['sessions']): void {
  const { tx, row } = ledger;
  const refs = new Map<string, string>();
  for (const { id, agent, origin, parent, watermark } of sessions) {
    const ref = randomUUIDv7();
    const parentRef = parent === null ? null : (refs.get(parent) ?? null);
    const values = [row.owner, row.conv, ref, id, agent, origin, parentRef, watermark] as const;
    tx.sql.run(INSERT_SESSION, ...values, JSON.stringify(NO_USAGE), tx.now);
    countSession(ledger);
    refs.set(id, ref);
  }
}

/** Adds a turn that ended elsewhere to the history. */
export async function addImported(ledger: Ledger, record: TurnRecord): Promise<void> {
  const { tx, row } = ledger;
  const { prompt, ...rest } = record;
  const asked = storeValue(tx.sql, row.owner, prompt);
  const body = storeValue(tx.sql, row.owner, rest);
  const no = await addEnded(ledger, record, asked, body);
  linkContents(tx.sql, row.owner, no, [...asked.hashes, ...body.hashes]);
}

/** The same for a turn whose content is stored already. */
async function addEnded(ledger: Ledger, record: TurnRecord, prompt: Json, body: Json): Promise<number> {
  const { tx, row } = ledger;
  const { n, outcome, agent, sessionId, startedAt, endedAt } = record;
  const failure = record.failure === null ? null : JSON.stringify(record.failure);
  const recovered = record.recovered ? 1 : null;
  const what = [prompt.json, prompt.refs, sessionId, failure, JSON.stringify(record.usage)];
  const added = await tx.sql.one<{ no: number }>(
    INSERT_TURN,
    ...[row.owner, row.conv, n, randomUUIDv7(), outcome, agent, ...what, startedAt, endedAt, recovered],
  );
  const no = added?.no as number;
  addRecord(ledger, no, record, body);
  row.last_agent = agent;
  return no;
}

/** Puts the record at the end of the history and makes it the head. `body`: the record without its prompt. */
export function addRecord({ tx, row }: Ledger, turn: number, record: TurnRecord, body: Json): void {
  row.head = record.n;
  row.history += 1;
  const unknown = record.unknownBefore ? 1 : 0;
  const place = [turn, row.owner, row.conv, record.n, row.history];
  tx.sql.run(INSERT_RECORD, ...place, body.json, body.refs, unknown);
  tx.sql.run(INSERT_WORDS, turn, row.owner, wordsOf(searchedTexts(record).join('\n')).join(' '));
}
