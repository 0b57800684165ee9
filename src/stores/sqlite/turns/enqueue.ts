import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { AdoptedSession, Enqueued, NewTurn } from '../../../ports/store/turns.ts';
import { TURN, type TurnRow, turnOf } from '../../shared/rows.ts';
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
import { linkContents, storeValue } from '../conversations/content.ts';
import { ensureConversation, titleFromPrompt } from '../conversations/conversations.ts';
import { addImported } from '../conversations/copy.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Database } from '../file/database.ts';
import { isConstraint } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';
import { carryOut } from '../steps.ts';
import { openSession } from './sessions.ts';
import { countTurns, spending } from './totals.ts';

const BY_REQUEST = `${TURN} WHERE t.owner = ? AND t.request_id = ? AND c.owner = t.owner`;
const RETRIED = 'SELECT 1 FROM turns WHERE id = ? AND conv = ?';
const SESSION_HOMES = `
  SELECT conv FROM sessions WHERE id = ? AND agent = ? AND state IN ('live', 'dormant', 'unsettled')`;
const ID_USED = 'SELECT 1 FROM sessions WHERE id = ? LIMIT 1';
const ID_CHOSEN = `
  SELECT 1 FROM turns INDEXED BY turns_open WHERE ended_at IS NULL AND json_extract(options, '$.newSession') = ? LIMIT 1`;
const INSERT = `
  INSERT INTO turns (owner, conv, n, id, request_id, request_hash, queued_seq, state, agent, prompt, prompt_refs, options,
    attempt, retry_of, was_sent, cancel_requested, usage, created_at, delivered, replaces)
  VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, 0, ?, 0, 0, ?, ?, ?, ?)`;
const OWN_SESSION =
  "SELECT 1 FROM sessions WHERE conv = ? AND id = ? AND agent = ? AND state IN ('live', 'dormant', 'unsettled')";
const NEWEST = 'SELECT ref FROM sessions WHERE conv = ? ORDER BY used_seq DESC LIMIT 1';

export function enqueue(tx: Tx, owner: string, { creates, ...asked }: NewTurn): Enqueued {
  if (creates === undefined) return accept(tx, owner, asked);
  const { conversation } = ensureConversation(tx, owner, creates);
  checkDriver(conversation.driver, creates.driver, creates.key);
  return accept(tx, owner, { ...asked, conversation: conversation.id });
}

function accept(tx: Tx, owner: string, request: NewTurn): Enqueued {
  const asked = requestHash(request);
  const known = findRequest(tx.db, owner, request.requestId, asked);
  if (known !== null) return known;
  const ledger = Ledger.of(tx, owner, request.conversation);
  const { row } = ledger;
  const perDay = perDayOf(request, row);
  if (perDay !== null) checkSpent(perDay, spending(tx.db, owner, row.conv, tx.now), tx.now);
  const agent = chosenAgent(request, row.last_agent);
  checkSession(tx.db, ledger, agent, request);
  checkNewSession(tx.db, request);
  checkRetried(tx.db, ledger, request);

  titleFromPrompt(ledger, request.adopts?.history.turns[0]?.prompt ?? request.prompt);
  if (request.adopts) adopt(ledger, agent, request.adopts);
  const { turn, seq } = addTurn(ledger, request, agent, asked);
  ledger.touch();
  ledger.save();
  return { turn, seq, duplicate: false };
}

/** Puts a turn at the end of the queue. Nothing is checked here. */
export function addTurn(ledger: Ledger, added: AddedTurn, agent: string, asked: Uint8Array | null) {
  const { tx, row } = ledger;
  const n = row.next_n;
  const { no, turn } = insertTurn(ledger, added, agent, asked);
  row.next_n += 1;
  const seq = ledger.append('turn.queued', { no, id: added.id }, queuedPayload(added, n, agent));
  row.pending += 1;
  row.ready_at ??= tx.monotonic;
  row.last_agent = agent;
  // Behind others it does not change the state of the conversation.
  if (row.pending === 1) ledger.restate(null, 'queued');
  return { turn, seq };
}

/** The same request again gives the same turn (R3). */
function findRequest(db: Database, owner: string, requestId: string | null, asked: Uint8Array | null): Enqueued | null {
  if (requestId === null || asked === null) return null;
  const row = db.one<TurnRow>(BY_REQUEST, owner, requestId);
  if (row === undefined) return null;
  checkRepeated(requestId, row.request_hash, asked);
  return { turn: turnOf(db, row), seq: row.queued_seq, duplicate: true };
}

/**
 * A native session belongs to one conversation (R1). The error does not say to which. Whether it is in use under another agent's
 * name is only found out when the turn is restored.
 */
function checkSession(db: Database, ledger: Ledger, agent: string, { options }: NewTurn): void {
  if (options.session === undefined) return;
  const homes = db.all<{ conv: number }>(SESSION_HOMES, options.session, agent);
  // The agent may have sessions of this id in several directories; then the conversation's own one is meant.
  if (homes.length === 0 || homes.some(({ conv }) => conv === ledger.row.conv)) return;
  throw sessionInUse(options.session);
}

/** An id that the caller chose opens a session once, in one conversation (R1). */
function checkNewSession(db: Database, { options: { newSession: id } }: NewTurn): void {
  if (id === undefined) return;
  if (db.one(ID_USED, id) === undefined && db.one(ID_CHOSEN, id) === undefined) return;
  throw sessionIdUsed(id);
}

function checkRetried(db: Database, ledger: Ledger, { retryOf }: NewTurn): void {
  if (retryOf === null || db.one(RETRIED, retryOf, ledger.row.conv) !== undefined) return;
  throw noTurnToRetry();
}

function insertTurn({ tx, row }: Ledger, request: AddedTurn, agent: string, asked: Uint8Array | null) {
  const options = optionsJson(request, agent, row.choices);
  const prompt = storeValue(tx.db, row.owner, request.prompt);
  const values = [
    row.owner,
    row.conv,
    row.next_n,
    request.id,
    request.requestId,
    asked,
    row.next_seq,
    agent,
    prompt.json,
    prompt.refs,
    options,
    request.retryOf,
    JSON.stringify(NO_USAGE),
    tx.now,
    request.options.deliverTo === undefined ? null : 0,
    request.replaces ?? null,
  ];
  try {
    const { no } = tx.db.run(INSERT, ...values);
    linkContents(tx.db, row.owner, no, prompt.hashes);
    return { no, turn: acceptedTurn(row, request, { agent, options, createdAt: tx.now }) };
  } catch (error) {
    // The number is given under the lock and the request id was checked, so it is the turn's own id.
    throw isConstraint(error) ? turnIdTaken(error) : error;
  }
}

/**
 * Takes a native session into the conversation. Its own turns go to the end of the history. It lacks the earlier history of the conversation, and is
 * told that with its first prompt.
 */
function adopt(ledger: Ledger, agent: string, adopted: AdoptedSession): void {
  const { tx, row } = ledger;
  const { ref, id, storage, history } = adopted;
  // Another request has adopted it meanwhile.
  if (tx.db.one(OWN_SESSION, row.conv, id, adopted.agent) !== undefined) return;
  checkAdoption(row, agent, adopted, carryOut(tx.db, sessionIsElsewhere(row.owner, row.id, { storage, id })));
  const lacks = row.history;
  const records = adoptedRecords(history, row.next_n, agent, id);
  for (const record of records) addImported(ledger, record);
  row.next_n += records.length;
  const ended = records.map((record) => endedTurn(record, ref));
  countTurns(ledger, ended);
  const parent = tx.db.one<{ ref: string }>(NEWEST, row.conv)?.ref ?? null;
  const condensedTo = ended[history.condensed - 1]?.n ?? 0;
  const place = { watermark: row.head, dropped: lacks, condensedTo, position: history.position } as const;
  const session = { ref, id, agent, storage, origin: 'adopted', parent, state: 'dormant', process: null } as const;
  openSession(ledger, { ...session, ...place }, null);
  if (ended.length > 0) ledger.append('conversation.imported', null, { turns: ended.length });
}
