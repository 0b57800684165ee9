import { createHash, randomUUIDv7 } from 'node:crypto';
import type { Conversation } from '../../../core/conversation.ts';
import { ThroughlineError } from '../../../core/errors.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { ImportedHistory, NewConversation } from '../../../ports/store/conversations.ts';
import type { Tx } from '../file/write-queue.ts';
import { addRecord } from '../turns/end.ts';
import { countSession, countTurns, type EndedTurn } from '../turns/totals.ts';
import { type Json, linkContents, storeValue } from './content.ts';
import { conversationRow, insertConversation } from './conversations.ts';
import type { Ledger } from './ledger.ts';
import { conversationOf, RECORD, type RecordRow, recordOf } from './rows.ts';

const COPIED = `${RECORD} WHERE r.conv = ? AND r.n <= ? ORDER BY r.n`;
const INSERT_TURN = `
  INSERT INTO turns (owner, conv, n, id, queued_seq, state, agent, prompt, prompt_refs, options, attempt, session_id,
    was_sent, cancel_requested, failure, usage, created_at, started_at, ended_at, imported, recovered)
  VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, '{}', 1, ?, 1, 0, ?, ?, ?, ?, ?, 1, ?)`;
const COPY_LINKS =
  'INSERT INTO content_links (turn, content, owner) SELECT ?, content, owner FROM content_links WHERE turn = ?';
const INSERT_SESSION = `
  INSERT INTO sessions (owner, conv, ref, id, agent, origin, parent, watermark, dropped, state, turns, usage, opened_at,
    used_at, used_seq)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 'closed', 0, ?, ?, ?, 0)`;

/** Copies rows; long content is shared. The parent's hash is over the JSON of the records, one a line. */
export function fork(tx: Tx, owner: string, source: string, n: number, spec: NewConversation): Conversation {
  const parent = conversationRow(tx.db, owner, source);
  if (!Number.isSafeInteger(n) || n < 0 || n > parent.head) {
    throw new ThroughlineError('invalid', `There is no turn ${n} in the history; its last turn is ${parent.head}.`);
  }
  const rows = tx.db.all<RecordRow>(COPIED, parent.no, n);
  const copied = rows.map((row) => ({ ...row, record: recordOf(tx.db, row) }));
  const hash = createHash('sha256');
  for (const { record } of copied) hash.update(`${JSON.stringify(record)}\n`);
  const origin = { conversation: source, n, hash: hash.digest('hex') };
  const named = {
    title: spec.title ?? parent.title,
    source: spec.title === null ? parent.titleSource : 'caller',
  } as const;

  const ledger = insertConversation(tx, owner, spec, named, origin);
  for (const { turn, record, prompt, prompt_refs, body, body_refs } of copied) {
    const no = addEnded(ledger, record, { json: prompt, refs: prompt_refs }, { json: body, refs: body_refs });
    if (prompt_refs + body_refs > 0) tx.db.run(COPY_LINKS, no, turn);
  }
  // Its turns ran in the parent's sessions, which it never uses: it has no session yet.
  countTurns(
    ledger,
    copied.map(({ record }) => endedTurn(record, null)),
  );
  ledger.append('conversation.forked', null, origin);
  ledger.row.next_n = n + 1;
  ledger.save();
  return conversationOf(conversationRow(tx.db, owner, spec.id));
}

export function importConversation(
  tx: Tx,
  owner: string,
  spec: NewConversation,
  history: ImportedHistory,
): Conversation {
  const { records } = history;
  const misplaced = records.find((record, index) => record.n <= (records[index - 1]?.n ?? 0));
  if (misplaced !== undefined)
    throw new ThroughlineError('invalid', `Turn ${misplaced.n} is out of order: turn numbers must increase.`);
  const named = spec.title === null ? null : ({ title: spec.title, source: 'caller' } as const);
  const ledger = insertConversation(tx, owner, spec, named);
  for (const record of records) addImported(ledger, record);
  importSessions(ledger, history.sessions);
  countTurns(
    ledger,
    records.map((record) => endedTurn(record, record.sessionId)),
  );
  ledger.append('conversation.imported', null, { turns: records.length });
  ledger.row.next_n = ledger.row.head + 1;
  ledger.save();
  return conversationOf(conversationRow(tx.db, owner, spec.id));
}

/** The ids come from the export; `parent` is the id of another session in it. */
function importSessions(ledger: Ledger, sessions: ImportedHistory['sessions']): void {
  const { tx, row } = ledger;
  const refs = new Map<string, string>();
  for (const { id, agent, origin, parent, watermark } of sessions) {
    const ref = randomUUIDv7();
    const parentRef = parent === null ? null : (refs.get(parent) ?? null);
    const values = [row.owner, row.conv, ref, id, agent, origin, parentRef, watermark] as const;
    tx.db.run(INSERT_SESSION, ...values, JSON.stringify(NO_USAGE), tx.now, tx.now);
    countSession(ledger);
    refs.set(id, ref);
  }
}

/** Adds a turn that ended elsewhere to the history. */
export function addImported(ledger: Ledger, record: TurnRecord): void {
  const { tx, row } = ledger;
  const { prompt, ...rest } = record;
  const asked = storeValue(tx.db, row.owner, prompt);
  const body = storeValue(tx.db, row.owner, rest);
  const no = addEnded(ledger, record, asked, body);
  linkContents(tx.db, row.owner, no, [...asked.hashes, ...body.hashes]);
}

/** The same for a turn whose content is stored already. */
function addEnded(ledger: Ledger, record: TurnRecord, prompt: Json, body: Json): number {
  const { tx, row } = ledger;
  const failure = record.failure === null ? null : JSON.stringify(record.failure);
  const { no } = tx.db.run(
    INSERT_TURN,
    row.owner,
    row.conv,
    record.n,
    randomUUIDv7(),
    record.outcome,
    record.agent,
    prompt.json,
    prompt.refs,
    record.sessionId,
    failure,
    JSON.stringify(record.usage),
    record.startedAt,
    record.startedAt,
    record.endedAt,
    record.recovered ? 1 : null,
  );
  addRecord(ledger, no, record, body);
  return no;
}

function endedTurn(record: TurnRecord, session: string | null): EndedTurn {
  return { n: record.n, at: record.endedAt, outcome: record.outcome, session, usage: record.usage };
}
