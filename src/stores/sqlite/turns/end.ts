import type { Prompt } from '../../../core/turn/content.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import type { EndOfTurn } from '../../../ports/store/writes.ts';
import { type Json, readValue } from '../../shared/content.ts';
import type { Stamp } from '../../shared/ledger.ts';
import type { RecordBody, TurnRow } from '../../shared/rows.ts';
import { searchedTexts } from '../../shared/search.ts';
import { checkRecord, endedPayload, NO_PROMPT } from '../../shared/turns.ts';
import { linkContents, storeValue } from '../conversations/content.ts';
import type { Ledger } from '../conversations/ledger.ts';
import type { Database } from '../file/database.ts';
import { withdrawOpen } from './permissions.ts';
import { endUse, isFirstOfUnread } from './sessions.ts';
import { countSpent, countTurns } from './totals.ts';

const END = `
  UPDATE turns SET state = ?, failure = ?, usage = ?, ended_at = ?, recovered = ?,
    session_id = coalesce(?, session_id) WHERE no = ?`;
const TAKE_BACK = 'UPDATE turns SET sent = NULL, was_sent = 0 WHERE no = ?';
const SET_PROMPT = 'UPDATE turns SET prompt = ?, prompt_refs = ? WHERE no = ?';
const INSERT_RECORD =
  'INSERT INTO records (turn, owner, conv, n, place, body, body_refs, unknown_before) VALUES (?, ?, ?, ?, ?, ?, ?, ?)';
const INSERT_WORDS = 'INSERT INTO words (rowid, prompt, reply) VALUES (?, ?, ?)';

/** Ends a turn, with everything that depends on it (R4, R9). */
export function endTurn(ledger: Ledger, turn: TurnRow, end: EndOfTurn, stamp: Stamp): void {
  const { tx, row } = ledger;
  const { outcome, failure, session, usage } = end;
  const unread = session !== null && isFirstOfUnread(ledger, session);
  const record = end.record && unread ? ({ ...end.record, unknownBefore: true } as const) : end.record;
  checkRecord(turn, end);
  if (end.unsent) tx.db.run(TAKE_BACK, turn.no);
  withdrawOpen(ledger, turn, 'The turn ended.', stamp);
  const at = record?.endedAt ?? tx.now;
  const id = session === null ? null : endUse(ledger, session, turn.agent, record === null ? 0 : 1, usage);
  const told = [failure === null ? null : JSON.stringify(failure), JSON.stringify(usage)] as const;
  tx.db.run(END, outcome, ...told, at, record?.recovered ? 1 : null, id, turn.no);
  if (record !== null) {
    const asked = turn.prompt === NO_PROMPT ? givePrompt(tx.db, turn, record.prompt) : turn;
    const body = storeValue(tx.db, row.owner, bodyOf(tx.db, asked, record));
    addRecord(ledger, turn.no, record, body);
    linkContents(tx.db, row.owner, turn.no, body.hashes);
    countTurns(ledger, [{ n: turn.n, at, outcome, session, usage }]);
    countSpent(ledger, turn.agent, 1, usage);
  }
  row.pending -= 1;
  ledger.restate({ outcome, failure });
  ledger.touch();
  ledger.append('turn.ended', turn, endedPayload(turn.n, end, record), stamp);
}

/** Puts the record at the end of the history and makes it the head. `body`: the record without its prompt. */
export function addRecord({ tx, row }: Ledger, turn: number, record: TurnRecord, body: Json): void {
  row.head = record.n;
  row.history += 1;
  const unknown = record.unknownBefore ? 1 : 0;
  tx.db.run(INSERT_RECORD, turn, row.owner, row.conv, record.n, row.history, body.json, body.refs, unknown);
  tx.db.run(INSERT_WORDS, turn, ...searchedTexts(record));
}

function givePrompt(db: Database, turn: TurnRow, prompt: Prompt): TurnRow {
  const { json, refs, hashes } = storeValue(db, turn.owner, prompt);
  db.run(SET_PROMPT, json, refs, turn.no);
  linkContents(db, turn.owner, turn.no, hashes);
  return { ...turn, prompt: json, prompt_refs: refs };
}

function bodyOf(db: Database, turn: TurnRow, record: TurnRecord): RecordBody {
  const { prompt, ...rest } = record;
  const known = turn.prompt_refs === 0 ? turn.prompt : JSON.stringify(readValue(db, turn.owner, turn.prompt, 1));
  return JSON.stringify(prompt) === known ? rest : record;
}
