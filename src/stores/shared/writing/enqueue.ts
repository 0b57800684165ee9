import type { Conversation } from '../../../core/conversation.ts';
import { type Prompt, titleOf } from '../../../core/turn/content.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { NewConversation } from '../../../ports/store/conversations.ts';
import type { AdoptedSession, Enqueued, NewTurn } from '../../../ports/store/turns.ts';
import { TURN, type TurnRow } from '../rows.ts';
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
  keyTaken,
  noTurnToRetry,
  optionsJson,
  perDayOf,
  queuedPayload,
  requestHash,
  sessionIdUsed,
  sessionInUse,
  turnIdTaken,
} from '../turns.ts';
import { putInPlace } from '../verbs/places.ts';
import { readTurn, sessionIsElsewhere } from '../verbs/reading.ts';
import { act, all, Collision, one, type Steps, unindexed, unindexedNo } from '../verbs/steps.ts';
import { addImported } from './imported.ts';
import type { LedgerTx, SharedLedger } from './ledger.ts';
import { openSession } from './sessions.ts';
import { countTurns, spending } from './totals.ts';

const BY_REQUEST = `${TURN} WHERE t.owner = ? AND t.request_id = ? AND ${unindexed('c.owner')} = t.owner`;
const RETRIED = `SELECT 1 FROM turns WHERE id = ? AND ${unindexedNo('conv')} = ?`;
const SESSION_HOMES = `
  SELECT conv FROM sessions WHERE id = ? AND agent = ? AND state IN ('live', 'dormant', 'unsettled')`;
const OWN_SESSION = `
  SELECT 1 FROM sessions WHERE ${unindexedNo('conv')} = ? AND id = ? AND agent = ? AND state IN ('live', 'dormant', 'unsettled')`;
const NEWEST = 'SELECT ref FROM sessions WHERE conv = ? ORDER BY used_seq DESC, no DESC LIMIT 1';

export function* enqueue(tx: LedgerTx, owner: string, { creates, isFirst, ...asked }: NewTurn): Steps<Enqueued> {
  if (creates === undefined) return yield* accept(owner, asked, ledgerOf(tx, owner, asked.conversation));
  // The request id is looked up first: a stored request was written with its key or later, so the key is then found too.
  const repeated = yield* requestRow(owner, asked.requestId);
  const known = yield* findByKey(tx, owner, creates.key);
  if (known === null) {
    const request = { ...asked, conversation: creates.id };
    return yield* accept(owner, request, createConversation(tx, owner, creates), repeated);
  }
  if (isFirst) throw keyTaken(creates.key);
  checkDriver(known.driver, creates.driver, creates.key);
  // The write queue listed this verb under the id of the new conversation, so this transaction may contain another verb of the known one.
  tx.alone();
  return yield* accept(owner, { ...asked, conversation: known.id }, ledgerOf(tx, owner, known.id));
}

export function* ensureConversation(tx: LedgerTx, owner: string, spec: NewConversation) {
  const known = yield* findByKey(tx, owner, spec.key);
  if (known !== null) return { conversation: known, created: false };
  const ledger = yield* createConversation(tx, owner, spec);
  yield* act(() => ledger.save());
  return { conversation: yield* act(() => tx.conversation(owner, spec.id)), created: true };
}

function findByKey(tx: LedgerTx, owner: string, key: string | null): Steps<Conversation | null> {
  return act(() => (key === null ? null : tx.findByKey(owner, key)));
}

/** A new conversation with its first event, which is not saved yet. */
function* createConversation(tx: LedgerTx, owner: string, spec: NewConversation): Steps<SharedLedger> {
  const { key, title, agent, cwd } = spec;
  const ledger = yield* act(() =>
    tx.insertConversation(owner, spec, title === null ? null : { title, source: 'caller' }),
  );
  ledger.append('conversation.created', null, { key, agent, cwd });
  return ledger;
}

function ledgerOf(tx: LedgerTx, owner: string, conversation: string): Steps<SharedLedger> {
  return act(() => tx.ledgerOf(owner, conversation));
}

/** `repeated`: the turn of the same request id, if it was read already. One that is stored later is refused by the database. */
function* accept(
  owner: string,
  request: NewTurn,
  open: Steps<SharedLedger>,
  repeated?: TurnRow | null,
): Steps<Enqueued> {
  const asked = requestHash(request);
  const known = repeated === undefined ? yield* requestRow(owner, request.requestId) : repeated;
  if (known !== null && asked !== null) {
    // The same request again gives the same turn (R3).
    checkRepeated(known.requestId ?? '', known.request_hash, asked);
    return { turn: yield* readTurn(known), seq: known.queued_seq, duplicate: true };
  }
  const ledger = yield* open;
  const { row, tx } = ledger;
  const agent = chosenAgent(request, row.last_agent);
  const perDay = perDayOf(request, row);
  if (perDay !== null) {
    // What the others of a shared transaction spend is not written yet.
    ledger.alone();
    checkSpent(perDay, yield* spending(owner, row.conv, tx.now), agent, tx.now);
  }
  yield* checkSession(ledger, agent, request);
  yield* checkNewSession(ledger, request);
  yield* checkRetried(ledger, request);

  titleFromPrompt(ledger, request.adopts?.history.turns[0]?.prompt ?? request.prompt);
  if (request.adopts) yield* adopt(ledger, agent, request.adopts);
  const { turn, seq } = yield* addTurn(ledger, request, agent, asked);
  yield* putInPlace(ledger, { putAway: false });
  ledger.touch();
  yield* act(() => ledger.save());
  return { turn, seq, duplicate: false };
}

/** The prompt names a conversation that nobody has named. */
export function titleFromPrompt(ledger: SharedLedger, prompt: Prompt): void {
  const title = titleOf(prompt);
  if (title !== '') ledger.giveTitle(title, 'prompt');
}

/** Puts a turn at the end of the queue. Nothing is checked here. */
export function* addTurn(ledger: SharedLedger, added: AddedTurn, agent: string, asked: Uint8Array | null = null) {
  const { tx, row } = ledger;
  const n = row.next_n;
  const { no, turn } = yield* insertTurn(ledger, added, agent, asked);
  row.next_n += 1;
  const seq = ledger.append('turn.queued', { no, id: turn.id }, queuedPayload(added, n, agent));
  row.pending += 1;
  row.ready_at ??= tx.monotonic;
  row.last_agent = agent;
  // Behind others it does not change the state of the conversation.
  if (row.pending === 1) ledger.restate(null, 'queued');
  return { turn, seq };
}

function* requestRow(owner: string, requestId: string | null): Steps<TurnRow | null> {
  return requestId === null ? null : ((yield* one<TurnRow>(BY_REQUEST, owner, requestId)) ?? null);
}

/**
 * A native session belongs to one conversation (R1). The error does not say to which. Whether it is in use under another agent's
 * name is only found out when the turn is restored.
 */
function* checkSession({ row }: SharedLedger, agent: string, { options: { session } }: NewTurn): Steps<void> {
  if (session === undefined) return;
  const homes = yield* all<{ conv: number }>(SESSION_HOMES, session, agent);
  // The agent may have sessions of this id in several directories; then the conversation's own one is meant.
  if (homes.length === 0 || homes.some(({ conv }) => conv === row.conv)) return;
  throw sessionInUse(session);
}

/** An id that the caller chose opens a session once, in one conversation (R1). */
function* checkNewSession(ledger: SharedLedger, { options: { newSession: id } }: NewTurn): Steps<void> {
  if (id !== undefined && (yield* act(() => ledger.sessionIdIsUsed(id)))) throw sessionIdUsed(id);
}

function* checkRetried({ row }: SharedLedger, { retryOf }: NewTurn): Steps<void> {
  if (retryOf !== null && (yield* one(RETRIED, retryOf, row.conv)) === undefined) throw noTurnToRetry();
}

function* insertTurn(ledger: SharedLedger, request: AddedTurn, agent: string, asked: Uint8Array | null) {
  const { tx, row } = ledger;
  const { id, requestId, retryOf, replaces = null } = request;
  const { newSession = null, deliverTo } = request.options;
  const options = optionsJson(request, agent, row.choices);
  const prompt = ledger.storeValue(request.prompt);
  const values = [
    ...[row.owner, row.conv, row.next_n, id, requestId, asked, row.next_seq, agent, prompt.json, prompt.refs, options],
    ...[retryOf, JSON.stringify(NO_USAGE), tx.now, deliverTo === undefined ? null : 0, replaces],
  ];
  const no = yield* act(() => ledger.insertTurn(id, values, newSession, takenTurn));
  ledger.linkContents(no, prompt.hashes);
  return { no, turn: acceptedTurn(row, request, { agent, options, createdAt: tx.now }) };
}

function takenTurn(index: string, cause: unknown): Error {
  // The same request, at the same moment, in another conversation.
  return index === 'turns_request' ? new Collision() : turnIdTaken(cause);
}

/**
 * Takes a native session into the conversation. Its own turns go to the end of the history. It lacks the earlier history of the conversation, and is
 * told that with its first prompt.
 */
function* adopt(ledger: SharedLedger, agent: string, adopted: AdoptedSession): Steps<void> {
  const { row } = ledger;
  ledger.alone();
  const { ref, id, storage, history } = adopted;
  // Another request has adopted it meanwhile.
  if ((yield* one(OWN_SESSION, row.conv, id, adopted.agent)) !== undefined) return;
  checkAdoption(row, agent, adopted, yield* sessionIsElsewhere(row.owner, row.id, { storage, id }));
  const lacks = row.history;
  const records = adoptedRecords(history, row.next_n, agent, id);
  for (const record of records) yield* addImported(ledger, record);
  row.next_n += records.length;
  const ended = records.map((record) => endedTurn(record, ref));
  yield* countTurns(ledger, ended);
  const parent = (yield* one<{ ref: string }>(NEWEST, row.conv))?.ref ?? null;
  const condensedTo = ended[history.condensed - 1]?.n ?? 0;
  const place = { watermark: row.head, dropped: lacks, condensedTo, position: history.position } as const;
  const session = { ref, id, agent, storage, origin: 'adopted', parent, state: 'dormant', process: null } as const;
  yield* openSession(ledger, { ...session, ...place }, null);
  if (ended.length > 0) ledger.append('conversation.imported', null, { turns: ended.length });
}
