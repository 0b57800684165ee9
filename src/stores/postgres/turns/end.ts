import type { TurnRecord } from '../../../core/turn/record.ts';
import type { EndOfTurn } from '../../../ports/store/writes.ts';
import { readValue } from '../../shared/content.ts';
import type { Stamp } from '../../shared/ledger.ts';
import type { RecordBody, TurnRow } from '../../shared/rows.ts';
import { checkRecord, endedPayload, NO_PROMPT } from '../../shared/turns.ts';
import { contentsOf, linkContents, storeValue } from '../conversations/content.ts';
import { addRecord } from '../conversations/copy.ts';
import type { Ledger } from '../conversations/ledger.ts';
import type { Sql, TxSql } from '../server/connect.ts';
import { openQuestions, withdraw } from './permissions.ts';
import { endUse, sessionFor } from './sessions.ts';
import { countTurns } from './totals.ts';

const END = `
  UPDATE turns SET state = $1, failure = $2, usage = $3, ended_at = $4, recovered = $5, session_id = coalesce($6, session_id)
  WHERE no = $7`;
const TAKE_BACK = 'UPDATE turns SET sent = NULL, was_sent = 0 WHERE no = $1';
const SET_PROMPT = 'UPDATE turns SET prompt = $1, prompt_refs = $2 WHERE no = $3';

/** Ends a turn, with everything that depends on it (R4, R9). */
export async function endTurn(ledger: Ledger, turn: TurnRow, end: EndOfTurn, stamp: Stamp): Promise<void> {
  const { tx, row } = ledger;
  const { outcome, failure, session, usage } = end;
  // Sent at once: nothing between them changes what they find.
  const [used, open] = await Promise.all([
    session === null ? null : sessionFor(ledger, session, turn.agent),
    openQuestions(ledger, turn),
  ]);
  // It was adopted without its history, and no turn of it is recorded yet: before this turn, something is not known.
  const unread = used !== null && used.unread === 1 && used.turns === 0;
  const record = end.record && unread ? ({ ...end.record, unknownBefore: true } as const) : end.record;
  checkRecord(turn, end);
  if (end.unsent) tx.sql.run(TAKE_BACK, turn.no);
  withdraw(ledger, turn, open, 'The turn ended.', stamp);
  const at = record?.endedAt ?? tx.now;
  const wasUsed = turn.sent !== null && turn.sessionId === used?.id;
  const id = used === null ? null : endUse(ledger, used, record === null ? 0 : 1, usage, wasUsed);
  const told = [failure === null ? null : JSON.stringify(failure), JSON.stringify(usage)] as const;
  tx.sql.run(END, outcome, ...told, at, record?.recovered ? 1 : null, id, turn.no);
  if (record !== null) {
    await keepRecord(ledger, turn, record);
    const spent = { agent: turn.agent, turns: 1, usage };
    await countTurns(ledger, [{ n: turn.n, at, outcome, session, usage }], { spent });
  }
  row.pending -= 1;
  ledger.writes(turn.id);
  // Behind the turn that ran, all others are queued.
  ledger.restate({ outcome, failure }, 'queued');
  ledger.touch();
  ledger.append('turn.ended', turn, endedPayload(turn.n, end, record), stamp);
}

async function keepRecord(ledger: Ledger, turn: TurnRow, record: TurnRecord): Promise<void> {
  const { tx, row } = ledger;
  const isGiven = turn.prompt === NO_PROMPT;
  const rest = isGiven ? givePrompt(tx.sql, turn, record) : await bodyOf(tx.sql, turn, record);
  const body = storeValue(tx.sql, row.owner, rest);
  addRecord(ledger, turn.no, record, body);
  linkContents(tx.sql, row.owner, turn.no, body.hashes);
}

/** The prompt of the record becomes that of the turn. Returns the rest: what is stored here may not be read again in this transaction. */
function givePrompt(sql: TxSql, turn: TurnRow, { prompt, ...rest }: TurnRecord): RecordBody {
  const { json, refs, hashes } = storeValue(sql, turn.owner, prompt);
  sql.run(SET_PROMPT, json, refs, turn.no);
  linkContents(sql, turn.owner, turn.no, hashes);
  return rest;
}

async function bodyOf(sql: Sql, turn: TurnRow, record: TurnRecord): Promise<RecordBody> {
  const { prompt, ...rest } = record;
  const source = await contentsOf(sql, turn.owner, [{ json: turn.prompt, refs: turn.prompt_refs }]);
  const known = JSON.stringify(readValue(source, turn.owner, turn.prompt, turn.prompt_refs));
  return JSON.stringify(prompt) === known ? rest : record;
}
