import { randomUUIDv7 } from 'node:crypto';
import type { TurnRecord } from '../../../core/turn/record.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { ImportedHistory } from '../../../ports/store/conversations.ts';
import type { Json } from '../content.ts';
import type { RecordRow } from '../rows.ts';
import { endedTurn } from '../turns.ts';
import { insert, run, type Steps } from '../verbs/steps.ts';
import type { SharedLedger } from './ledger.ts';
import { countSession, countTurns } from './totals.ts';

const INSERT_TURN = `
  INSERT INTO turns (owner, conv, n, id, queued_seq, state, agent, prompt, prompt_refs, options, attempt, session_id,
    was_sent, cancel_requested, failure, usage, created_at, started_at, ended_at, imported, recovered)
  VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, '{}', 1, ?9, 1, 0, ?10, ?11, ?12, ?12, ?13, 1, ?14)`;
const COPY_LINKS =
  'INSERT INTO content_links (turn, content, owner) SELECT ?, content, owner FROM content_links WHERE turn = ?';
const INSERT_SESSION = `
  INSERT INTO sessions (owner, conv, ref, id, agent, storage, origin, parent, watermark, dropped, state, turns, usage, opened_at,
    used_at, used_seq)
  VALUES (?1, ?2, ?3, ?4, ?5, '', ?6, ?7, ?8, 0, 'closed', 0, ?9, ?10, ?10, 0)`;

/** Adds a turn that ended elsewhere to the history, and does not count it. */
export function* addImported(ledger: SharedLedger, record: TurnRecord): Steps<void> {
  const { prompt, ...rest } = record;
  const [asked, body] = [ledger.storeValue(prompt), ledger.storeValue(rest)];
  const no = yield* addEnded(ledger, record, asked, body);
  ledger.linkContents(no, [...asked.hashes, ...body.hashes]);
}

/** Adds turns that ended elsewhere to the history, and counts them. */
export function* importTurns(ledger: SharedLedger, records: readonly TurnRecord[]): Steps<void> {
  for (const record of records) yield* addImported(ledger, record);
  const ended = records.map((record) => endedTurn(record, record.sessionId));
  yield* countTurns(ledger, ended);
}

export interface ForkedTurn extends RecordRow {
  readonly record: TurnRecord;
}

/** The same for turns of another conversation, whose content is stored already. */
export function* forkTurns(ledger: SharedLedger, turns: readonly ForkedTurn[]): Steps<void> {
  for (const { record, turn, prompt, prompt_refs, body, body_refs } of turns) {
    const no = yield* addEnded(ledger, record, { json: prompt, refs: prompt_refs }, { json: body, refs: body_refs });
    if (prompt_refs + body_refs > 0) yield* run(COPY_LINKS, no, turn);
  }
  // They ran in the parent's sessions, which the fork never uses: it has no session yet.
  const ended = turns.map(({ record }) => endedTurn(record, null));
  yield* countTurns(ledger, ended);
}

function* addEnded(ledger: SharedLedger, record: TurnRecord, prompt: Json, body: Json): Steps<number> {
  const { row } = ledger;
  const { n, outcome, agent, sessionId, startedAt, endedAt } = record;
  const failure = record.failure === null ? null : JSON.stringify(record.failure);
  const recovered = record.recovered ? 1 : null;
  const no = yield* insert(
    INSERT_TURN,
    ...[row.owner, row.conv, n, randomUUIDv7(), outcome, agent, prompt.json, prompt.refs, sessionId, failure],
    ...[JSON.stringify(record.usage), startedAt, endedAt, recovered],
  );
  ledger.addRecord(no, record, body);
  row.last_agent = agent;
  return no;
}

/** The ids come from the export; `parent` is the id of another session in it. `refs`: of those that are there, by id. */
export function* importSessions(
  ledger: SharedLedger,
  sessions: ImportedHistory['sessions'],
  refs = new Map<string, string>(),
): Steps<void> {
  const { tx, row } = ledger;
  for (const { id, agent, origin, parent, watermark } of sessions) {
    const ref = randomUUIDv7();
    const parentRef = parent === null ? null : (refs.get(parent) ?? null);
    const values = [row.owner, row.conv, ref, id, agent, origin, parentRef, watermark] as const;
    yield* run(INSERT_SESSION, ...values, JSON.stringify(NO_USAGE), tx.now);
    yield* countSession(ledger);
    refs.set(id, ref);
  }
}
