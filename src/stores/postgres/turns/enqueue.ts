import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { AdoptedSession, Enqueued, NewTurn } from '../../../ports/store/turns.ts';
import { TURN, type TurnRow } from '../../shared/rows.ts';
import {
  type AddedTurn,
  acceptedTurn,
  adoptedRecords,
  checkAdoption,
  checkDriver,
  checkRepeated,
  checkSpent,
  chosenAgent,
  endedTurn,
  noTurnToRetry,
  optionsJson,
  perDayOf,
  queuedPayload,
  requestHash,
  sessionIdUsed,
  sessionInUse,
  turnIdTaken,
} from '../../shared/turns.ts';
import { sessionIsElsewhere } from '../../shared/verbs/reading.ts';
import { Collision, unindexed, unindexedNo } from '../../shared/verbs/steps.ts';
import { linkContents, readTurn, storeValue } from '../conversations/content.ts';
import { createConversation, findByKey, titleFromPrompt } from '../conversations/conversations.ts';
import { addImported } from '../conversations/copy.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { violated } from '../server/faults.ts';
import { carryOut } from '../steps.ts';
import { openSession } from './sessions.ts';
import { countTurns, spending } from './totals.ts';

const BY_REQUEST = `${TURN} WHERE t.owner = $1 AND t.request_id = $2 AND ${unindexed('c.owner')} = t.owner`;
const RETRIED = `SELECT 1 FROM turns WHERE id = $1 AND ${unindexedNo('conv')} = $2`;
const SESSION_HOMES = `
  SELECT conv FROM sessions WHERE id = $1 AND agent = $2 AND state IN ('live', 'dormant', 'unsettled')`;
/** Of two that choose the same id at the same moment, one waits for the other. */
const LOCK_ID = "SELECT pg_advisory_xact_lock(hashtextextended('session:' || $1, 0))";
const ID_USED = `
  SELECT 1 FROM sessions WHERE id = $1 UNION ALL
  SELECT 1 FROM turns WHERE ended_at IS NULL AND new_session IS NOT NULL AND new_session = $1 LIMIT 1`;
/** A number for a new turn. Its id makes the statement one for each of many (many.ts). */
const NEXT_NO = "SELECT $1::text AS id, nextval('turns_no_seq') AS no";
const INSERT = `
  INSERT INTO turns (owner, conv, n, id, request_id, request_hash, queued_seq, agent, prompt, prompt_refs, options, new_session, retry_of, usage,
    created_at, delivered, replaces, no, state, attempt, was_sent, cancel_requested)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, 'queued', 0, 0, 0)`;
const OWN_SESSION = `
  SELECT 1 FROM sessions WHERE ${unindexedNo('conv')} = $1 AND id = $2 AND agent = $3 AND state IN ('live', 'dormant', 'unsettled')`;
const NEWEST = 'SELECT ref FROM sessions WHERE conv = $1 ORDER BY used_seq DESC, no DESC LIMIT 1';

export async function enqueue(tx: Tx, owner: string, { creates, ...asked }: NewTurn): Promise<Enqueued> {
  if (creates === undefined) return accept(tx, owner, asked, () => Ledger.of(tx, owner, asked.conversation));
  await tx.begun;
  // Before the key: a request that is found here was stored together with the key, or after it. So the key is found, too.
  const repeated = await requestRow(tx.sql, owner, asked.requestId);
  const known = creates.key === null ? null : await findByKey(tx.sql, owner, creates.key);
  if (known === null) {
    const request = { ...asked, conversation: creates.id };
    return accept(tx, owner, request, () => createConversation(tx, owner, creates), repeated);
  }
  checkDriver(known.driver, creates.driver, creates.key);
  // The queue knew this verb by the id of the new conversation: another verb of this one may be in the same transaction.
  tx.alone();
  return accept(tx, owner, { ...asked, conversation: known.id }, () => Ledger.of(tx, owner, known.id));
}

/** `repeated`: the turn of the same request id, if it was read already. One that is stored later is refused by the database. */
async function accept(
  tx: Tx,
  owner: string,
  request: NewTurn,
  open: () => Promise<Ledger>,
  repeated?: TurnRow | null,
): Promise<Enqueued> {
  const asked = requestHash(request);
  const row = repeated === undefined ? await requestRow(tx.sql, owner, request.requestId) : repeated;
  if (row !== null && asked !== null) {
    // The same request again gives the same turn (R3).
    checkRepeated(row.requestId ?? '', row.request_hash, asked);
    return { turn: await readTurn(tx.sql, row), seq: row.queued_seq, duplicate: true };
  }
  const ledger = await open();
  const perDay = perDayOf(request, ledger.row);
  if (perDay !== null) {
    // What the others of a shared transaction spend is not written yet.
    tx.alone();
    checkSpent(perDay, await spending(tx.sql, owner, ledger.row.conv, tx.now), tx.now);
  }
  const agent = chosenAgent(request, ledger.row.last_agent);
  await checkSession(tx.sql, ledger, agent, request);
  await checkNewSession(tx, request);
  await checkRetried(tx.sql, ledger, request);

  titleFromPrompt(ledger, request.adopts?.history.turns[0]?.prompt ?? request.prompt);
  if (request.adopts) await adopt(ledger, agent, request.adopts);
  const { turn, seq } = await addTurn(ledger, request, agent, asked);
  ledger.touch();
  await ledger.save();
  return { turn, seq, duplicate: false };
}

/** Puts a turn at the end of the queue. Nothing is checked here. */
export async function addTurn(ledger: Ledger, added: AddedTurn, agent: string, asked: Uint8Array | null) {
  const { tx, row } = ledger;
  const n = row.next_n;
  const { no, turn } = await insertTurn(ledger, added, agent, asked);
  row.next_n += 1;
  const seq = ledger.append('turn.queued', { no, id: turn.id }, queuedPayload(added, n, agent));
  ledger.accepted();
  row.ready_at ??= tx.monotonic;
  row.last_agent = agent;
  return { turn, seq };
}

async function requestRow(sql: Sql, owner: string, requestId: string | null): Promise<TurnRow | null> {
  return requestId === null ? null : ((await sql.one<TurnRow>(BY_REQUEST, owner, requestId)) ?? null);
}

/** Whether a session is in use under another agent's name is only found out when the turn is restored. */
async function checkSession(sql: Sql, ledger: Ledger, agent: string, { options }: NewTurn): Promise<void> {
  if (options.session === undefined) return;
  const homes = await sql.all<{ conv: number }>(SESSION_HOMES, options.session, agent);
  // The agent may have sessions of this id in several directories; then the conversation's own one is meant.
  if (homes.length === 0 || homes.some(({ conv }) => conv === ledger.row.conv)) return;
  throw sessionInUse(options.session);
}

async function checkNewSession(tx: Tx, { options: { newSession: id } }: NewTurn): Promise<void> {
  if (id === undefined) return;
  tx.alone();
  const { sql } = tx;
  sql.run(LOCK_ID, id);
  if ((await sql.one(ID_USED, id)) !== undefined) throw sessionIdUsed(id);
}

async function checkRetried(sql: Sql, ledger: Ledger, { retryOf }: NewTurn): Promise<void> {
  if (retryOf !== null && (await sql.one(RETRIED, retryOf, ledger.row.conv)) === undefined) throw noTurnToRetry();
}

async function insertTurn({ tx, row }: Ledger, request: AddedTurn, agent: string, asked: Uint8Array | null) {
  const { sql, now } = tx;
  const { id, requestId, retryOf, replaces = null } = request;
  const { no } = (await sql.one<{ no: number }>(NEXT_NO, id)) as { no: number };
  const prompt = storeValue(sql, row.owner, request.prompt);
  const { newSession, deliverTo } = request.options;
  const options = optionsJson(request, agent, row.choices);
  const place = [row.owner, row.conv, row.next_n, id, requestId, asked, row.next_seq];
  const rest = [JSON.stringify(NO_USAGE), now, deliverTo === undefined ? null : 0, replaces, no];
  const what = [agent, prompt.json, prompt.refs, options, newSession ?? null, retryOf];
  sql.runOr(takenTurn, INSERT, ...place, ...what, ...rest);
  linkContents(sql, row.owner, no, prompt.hashes);
  return { no, turn: acceptedTurn(row, request, { agent, options, createdAt: now }) };
}

function takenTurn(fault: unknown): unknown {
  // The same request, at the same moment, in another conversation.
  if (violated(fault) === 'turns_request') return new Collision();
  return violated(fault) === null ? fault : turnIdTaken(fault);
}

/**
 * Takes a native session into the conversation. Its own turns go to the end of the history. It lacks the earlier history of the conversation, and is
 * told that with its first prompt.
 */
async function adopt(ledger: Ledger, agent: string, adopted: AdoptedSession): Promise<void> {
  const { tx, row } = ledger;
  tx.alone();
  const { ref, id, storage, history } = adopted;
  // Another request has adopted it meanwhile.
  if ((await tx.sql.one(OWN_SESSION, row.conv, id, adopted.agent)) !== undefined) return;
  checkAdoption(row, agent, adopted, await carryOut(tx.sql, sessionIsElsewhere(row.owner, row.id, { storage, id })));
  const lacks = row.history;
  const records = adoptedRecords(history, row.next_n, agent, id);
  for (const record of records) await addImported(ledger, record);
  row.next_n += records.length;
  const ended = records.map((record) => endedTurn(record, ref));
  await countTurns(ledger, ended);
  const parent = (await tx.sql.one<{ ref: string }>(NEWEST, row.conv))?.ref ?? null;
  const condensedTo = ended[history.condensed - 1]?.n ?? 0;
  const place = { watermark: row.head, dropped: lacks, condensedTo, position: history.position } as const;
  const session = { ref, id, agent, storage, origin: 'adopted', parent, state: 'dormant', process: null } as const;
  await openSession(ledger, { ...session, ...place }, null);
  if (ended.length > 0) ledger.append('conversation.imported', null, { turns: ended.length });
}
