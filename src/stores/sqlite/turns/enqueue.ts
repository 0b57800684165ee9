import { noAgentGiven, noSuchAgent, ThroughlineError } from '../../../core/errors.ts';
import { given } from '../../../core/input/arguments.ts';
import { type Choices, keptFor } from '../../../core/turn/choices.ts';
import { titleOf } from '../../../core/turn/content.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { AskedAgent, Enqueued, NewTurn } from '../../../ports/store/turns.ts';
import { canonicalHash, linkContents, storeValue } from '../conversations/content.ts';
import { conversationNo, ensureConversation, titleFromPrompt } from '../conversations/conversations.ts';
import { Ledger } from '../conversations/ledger.ts';
import { TURN, type TurnRow, turnOf } from '../conversations/rows.ts';
import type { Database } from '../file/database.ts';
import { isConstraint } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';
import { adopt } from './adopt.ts';

const BY_REQUEST = `${TURN} WHERE t.owner = ? AND t.request_id = ? AND c.owner = t.owner`;
const BY_NO = `${TURN} WHERE t.no = ?`;
const PREVIOUS_AGENT = 'SELECT agent FROM turns WHERE conv = ? ORDER BY n DESC LIMIT 1';
const OWN_AGENT = 'SELECT agent FROM conversations WHERE no = ?';
const OWN_CHOICES = 'SELECT choices FROM conversations WHERE no = ?';
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

export function enqueue(tx: Tx, owner: string, { creates, ...asked }: NewTurn): Enqueued {
  if (creates === undefined) return accept(tx, owner, asked);
  const { conversation } = ensureConversation(tx, owner, creates);
  if (conversation.driver !== creates.driver) {
    throw new ThroughlineError('conflict', `A conversation "${creates.key}" was created meanwhile.`, {
      hint: 'Use another key.',
    });
  }
  return accept(tx, owner, { ...asked, conversation: conversation.id });
}

function accept(tx: Tx, owner: string, request: NewTurn): Enqueued {
  const asked = requestHash(request);
  const known = findRequest(tx.db, owner, request.requestId, asked);
  if (known !== null) return known;
  const ledger = Ledger.of(tx, owner, request.conversation);
  const agent = agentFor(tx.db, ledger.row.conv, request);
  checkSession(tx.db, ledger, agent, request);
  checkNewSession(tx.db, request);
  checkRetried(tx.db, ledger, request);

  titleFromPrompt(ledger, request.adopts?.history.turns[0]?.prompt ?? request.prompt);
  if (request.adopts) adopt(ledger, agent, request.adopts);
  const { no, seq } = addTurn(ledger, request, agent, asked);
  ledger.touch();
  ledger.save();
  return { turn: turnOf(tx.db, tx.db.one<TurnRow>(BY_NO, no) as TurnRow), seq, duplicate: false };
}

/** A turn as it is stored. `replaces`: the id of the queued turn whose place it takes. */
type AddedTurn = Pick<NewTurn, 'id' | 'requestId' | 'prompt' | 'options' | 'permissions' | 'retryOf' | 'by'> & {
  readonly replaces?: string;
};

/** Puts a turn at the end of the queue. Nothing is checked here. */
export function addTurn(ledger: Ledger, added: AddedTurn, agent: string, asked: Uint8Array | null) {
  const { tx, row } = ledger;
  const { id, requestId, retryOf, replaces, by } = added;
  const n = row.next_n;
  const no = insertTurn(ledger, added, agent, asked);
  row.next_n += 1;
  const preview = titleOf(added.prompt);
  const seq = ledger.append(
    'turn.queued',
    { no, id },
    { n, agent, requestId, retryOf, ...given({ replaces, by }), preview },
  );
  row.pending += 1;
  row.ready_at ??= tx.monotonic;
  row.last_agent = agent;
  ledger.restate();
  return { no, seq };
}

/** Tells a repetition from another request with the same id; null: the request has no id. */
function requestHash({ requestId, conversation, agent, prompt, options, retryOf }: NewTurn): Uint8Array | null {
  return requestId === null ? null : canonicalHash([conversation, agent, prompt, options, retryOf]);
}

/** The same request again gives the same turn (R3). */
function findRequest(db: Database, owner: string, requestId: string | null, asked: Uint8Array | null): Enqueued | null {
  if (requestId === null || asked === null) return null;
  const row = db.one<TurnRow>(BY_REQUEST, owner, requestId);
  if (row === undefined) return null;
  if (row.request_hash === null || Buffer.compare(row.request_hash, asked) !== 0) {
    throw usedOtherwise(requestId);
  }
  return { turn: turnOf(db, row), seq: row.queued_seq, duplicate: true };
}

export function usedOtherwise(requestId: string): ThroughlineError {
  return new ThroughlineError('conflict', `The request id "${requestId}" was already used for another request.`, {
    hint: 'Use a new request id for a new request.',
  });
}

export function agentOf(db: Database, owner: string, request: AskedAgent): string {
  return agentFor(db, conversationNo(db, owner, request.conversation), request);
}

/** The agent is fixed here: named, else the previous turn's, else the conversation's, else the default. */
function agentFor(db: Database, conv: number, request: AskedAgent): string {
  const agent =
    request.agent ??
    db.one<{ agent: string }>(PREVIOUS_AGENT, conv)?.agent ??
    db.one<{ agent: string | null }>(OWN_AGENT, conv)?.agent ??
    request.defaultAgent;
  if (agent === null) throw noAgentGiven(request.agents);
  if (request.agents?.includes(agent) === false) throw noSuchAgent(agent, request.agents);
  return agent;
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
  throw new ThroughlineError(
    'refused',
    `The session "${options.session}" is in use elsewhere and cannot be used here.`,
  );
}

/** An id that the caller chose opens a session once, in one conversation (R1). */
function checkNewSession(db: Database, { options: { newSession: id } }: NewTurn): void {
  if (id === undefined) return;
  if (db.one(ID_USED, id) === undefined && db.one(ID_CHOSEN, id) === undefined) return;
  throw new ThroughlineError('refused', `The session id "${id}" was used before, or an open turn has chosen it.`, {
    hint: 'Choose another one. To continue in an existing session, name it as "session".',
  });
}

function checkRetried(db: Database, ledger: Ledger, { retryOf }: NewTurn): void {
  if (retryOf === null || db.one(RETRIED, retryOf, ledger.row.conv) !== undefined) return;
  throw new ThroughlineError('not_found', 'The turn to retry is not in this conversation.');
}

/** What the conversation has chosen for this agent; undefined: nothing. A retry has the choices of the turn that it repeats. */
function keptBy(db: Database, conv: number, agent: string): Choices | undefined {
  const { choices = '{}' } = db.one<{ choices: string }>(OWN_CHOICES, conv) ?? {};
  return choices === '{}' ? undefined : keptFor(JSON.parse(choices), agent);
}

function insertTurn({ tx, row }: Ledger, request: AddedTurn, agent: string, asked: Uint8Array | null): number {
  const prompt = storeValue(tx.db, row.owner, request.prompt);
  // What replaces a turn has its choices.
  const kept = request.replaces === undefined ? keptBy(tx.db, row.conv, agent) : undefined;
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
    JSON.stringify({
      ...given({ permissions: request.permissions, kept }),
      ...request.options,
    }),
    request.retryOf,
    JSON.stringify(NO_USAGE),
    tx.now,
    request.options.deliverTo === undefined ? null : 0,
    request.replaces ?? null,
  ];
  try {
    const { no } = tx.db.run(INSERT, ...values);
    linkContents(tx.db, row.owner, no, prompt.hashes);
    return no;
  } catch (error) {
    // The number is given under the lock and the request id was checked, so it is the turn's own id.
    if (isConstraint(error))
      throw new ThroughlineError('conflict', 'A turn with this id exists already.', { cause: error });
    throw error;
  }
}
