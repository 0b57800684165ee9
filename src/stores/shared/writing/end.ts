import type { TurnRecord } from '../../../core/turn/record.ts';
import type { EndOfTurn } from '../../../ports/store/writes.ts';
import { readValue } from '../content.ts';
import type { Stamp } from '../ledger.ts';
import type { RecordBody, TurnRow } from '../rows.ts';
import { checkRecord, endedPayload, NO_PROMPT } from '../turns.ts';
import { act, contents, run, type Steps, together } from '../verbs/steps.ts';
import type { SharedLedger } from './ledger.ts';
import { openQuestions, withdraw } from './permissions.ts';
import { endUse, sessionFor } from './sessions.ts';
import { countTurns } from './totals.ts';

const END = `
  UPDATE turns SET state = ?, failure = ?, usage = ?, ended_at = ?, recovered = ?, session_id = coalesce(?, session_id)
  WHERE no = ?`;
const TAKE_BACK = 'UPDATE turns SET sent = NULL, was_sent = 0 WHERE no = ?';
const SET_PROMPT = 'UPDATE turns SET prompt = ?, prompt_refs = ? WHERE no = ?';

/** Ends a turn, with everything that depends on it (R4, R9). */
export function* endTurn(ledger: SharedLedger, turn: TurnRow, end: EndOfTurn, stamp: Stamp): Steps<void> {
  const { tx, row } = ledger;
  const { outcome, failure, session, usage } = end;
  checkRecord(turn, end);
  const [used, open] = yield* together(
    session === null ? act(() => null) : sessionFor(ledger, session, turn.agent),
    openQuestions(ledger, turn),
  );
  // It was adopted without its history, and no turn of it is recorded yet: before this turn, something is not known.
  const unread = used !== null && used.unread === 1 && used.turns === 0;
  const record = end.record && unread ? ({ ...end.record, unknownBefore: true } as const) : end.record;
  if (end.unsent) yield* run(TAKE_BACK, turn.no);
  yield* withdraw(ledger, turn, open, 'The turn ended.', stamp);
  const at = record?.endedAt ?? tx.now;
  const id = used === null ? null : yield* endUse(ledger, used, record === null ? 0 : 1, usage);
  const told = [failure === null ? null : JSON.stringify(failure), JSON.stringify(usage)] as const;
  yield* run(END, outcome, ...told, at, record?.recovered ? 1 : null, id, turn.no);
  if (record !== null) {
    yield* keepRecord(ledger, turn, record);
    const spent = { agent: turn.agent, turns: 1, usage };
    yield* countTurns(ledger, [{ n: turn.n, at, outcome, session, usage }], { spent });
  }
  row.pending -= 1;
  ledger.writes(turn.id);
  // Behind the turn that ran, all others are queued.
  ledger.restate({ outcome, failure }, 'queued');
  ledger.touch();
  ledger.append('turn.ended', turn, endedPayload(turn.n, end, record), stamp);
}

function* keepRecord(ledger: SharedLedger, turn: TurnRow, record: TurnRecord): Steps<void> {
  const rest = turn.prompt === NO_PROMPT ? yield* givePrompt(ledger, turn, record) : yield* bodyOf(turn, record);
  const body = ledger.storeValue(rest);
  ledger.addRecord(turn.no, record, body);
  ledger.linkContents(turn.no, body.hashes);
}

/** The prompt of the record becomes that of the turn. Returns the rest: what is stored here may not be read again in this transaction. */
function* givePrompt(ledger: SharedLedger, turn: TurnRow, { prompt, ...rest }: TurnRecord): Steps<RecordBody> {
  const { json, refs, hashes } = ledger.storeValue(prompt);
  yield* run(SET_PROMPT, json, refs, turn.no);
  ledger.linkContents(turn.no, hashes);
  return rest;
}

function* bodyOf(turn: TurnRow, record: TurnRecord): Steps<RecordBody> {
  const { prompt, ...rest } = record;
  const source = yield* contents(turn.owner, [{ json: turn.prompt, refs: turn.prompt_refs }]);
  const known = JSON.stringify(readValue(source, turn.owner, turn.prompt, turn.prompt_refs));
  return JSON.stringify(prompt) === known ? rest : record;
}
