// What callers change in the turns of a conversation: they cancel, answer, deliver and reorder.

import { asSentence, noSuchTurn, ThroughlineError } from '../../../core/errors.ts';
import { MOST_QUEUED, planQueue, queueChanged } from '../../../core/queue.ts';
import { taskOfRequest } from '../../../core/tasks/task-progress.ts';
import type { AnsweredFrom, Permission, PermissionOption } from '../../../core/turn/permission.ts';
import { hasEnded, type Turn } from '../../../core/turn/turn.ts';
import { NO_USAGE } from '../../../core/turn/usage.ts';
import type { Requeue, Requeued } from '../../../ports/store/turns.ts';
import { canonicalHash } from '../content.ts';
import { type PermissionRow, permissionOf, TURN, type TurnRow } from '../rows.ts';
import { cancelledBy, checkDelivered, checkRepeated } from '../turns.ts';
import { addTurn, titleFromPrompt } from '../writing/enqueue.ts';
import type { LedgerTx, SharedLedger } from '../writing/ledger.ts';
import { goOn } from '../writing/permissions.ts';
import { permissionRow, readTurn, turnRow } from './reading.ts';
import { act, all, Collision, changed, one, orTaken, run, type Steps, type StepTx, unindexedNo } from './steps.ts';

const QUEUE = `
  SELECT no, id, n FROM turns WHERE conv = ? AND ended_at IS NULL AND state = 'queued' ORDER BY n LIMIT ${MOST_QUEUED + 1}`;
const BY_ID = `${TURN} WHERE t.id = ? AND ${unindexedNo('t.conv')} = ?`;
const TASK = 'SELECT 1 FROM tasks WHERE id = ? AND owner = ?';
const KNOWN = 'SELECT request_hash, result FROM requeues WHERE owner = ? AND request_id = ?';
const REMEMBER = 'INSERT INTO requeues (owner, conv, request_id, request_hash, result) VALUES (?, ?, ?, ?, ?)';
const DELIVERED = 'UPDATE turns SET delivered = 1 WHERE no = ?';
const CANCEL = `
  UPDATE turns SET state = 'cancelled', cancel_requested = 1, failure = ?, ended_at = ?, replaced_by = ? WHERE no = ?`;
const NOT_PENDING = 'UPDATE turns SET delivered = NULL WHERE no = ? AND delivered = 0';
const REQUEST = 'UPDATE turns SET cancel_requested = 1 WHERE no = ?';
const ANSWER =
  "UPDATE permissions SET state = 'answered', option_id = ?, answered_by = ?, answered_from = ?, ended_at = ? WHERE no = ?";

/** The turn is read again when the conversation is locked: it may have begun or ended meanwhile. */
export function* requestCancel(tx: LedgerTx, owner: string, id: string, by: string): Steps<Turn> {
  const seen = yield* turnRow(owner, id);
  if (isOver(seen)) return yield* readTurn(seen);
  const ledger = yield* act(() => tx.ledgerByNo(seen.conv));
  const turn = yield* turnRow(owner, id);
  if (isOver(turn)) return yield* readTurn(turn);
  if (turn.state === 'queued') yield* endQueued(tx, ledger, turn, by);
  else {
    ledger.append('turn.cancel_requested', turn, { n: turn.n, by });
    yield* run(REQUEST, turn.no);
  }
  yield* act(() => ledger.save());
  return yield* readTurn(yield* turnRow(owner, id));
}

/** The first answer wins. So the permission is read again when the conversation is locked. */
export function* answer(
  tx: LedgerTx,
  owner: string,
  id: string,
  optionId: string,
  by: string,
  from: AnsweredFrom | null = null,
): Steps<Permission> {
  const { conv } = yield* permissionRow(owner, id);
  const ledger = yield* act(() => tx.ledgerByNo(conv));
  const { no, turn_no, turn, ...asked } = yield* permissionRow(owner, id);
  checkAnswer(asked, optionId);
  if (ledger.row.worker === null) throw nobodyWaits(turn);
  yield* run(ANSWER, optionId, by, from, tx.now, no);
  yield* goOn(ledger, turn_no);
  ledger.append('permission.answered', { no: turn_no, id: turn }, { id, optionId, by, ...(from && { from }) });
  yield* act(() => ledger.save());
  return permissionOf(yield* permissionRow(owner, id));
}

/** The first answer wins, and it is one of the options. */
function checkAnswer(row: AskedRow, optionId: string): void {
  const options: PermissionOption[] = JSON.parse(row.options);
  if (row.state === 'answered') throw new ThroughlineError('conflict', asSentence(otherAnswer(row, options)));
  if (row.state !== 'open') {
    throw new ThroughlineError(
      'conflict',
      asSentence(`The permission was ${row.state}: ${row.reason ?? 'its turn ended'}`),
    );
  }
  if (options.some((option) => option.optionId === optionId)) return;
  throw new ThroughlineError('invalid', `There is no option "${optionId}".`, {
    hint: `Options: ${options.map((option) => option.optionId).join(', ')}.`,
  });
}

type AskedRow = Pick<PermissionRow, 'state' | 'reason' | 'options' | 'optionId' | 'answeredBy' | 'answeredFrom'>;

function otherAnswer({ optionId, answeredBy, answeredFrom }: AskedRow, options: readonly PermissionOption[]): string {
  const name = options.find((option) => option.optionId === optionId)?.name ?? optionId;
  const where = answeredFrom === null ? '' : `, from the ${answeredFrom.replace('_', ' ')}`;
  return `The permission was already answered: "${name}", by ${answeredBy}${where}`;
}

/** The holder of the lease reads the answer as an event; without a holder it is refused. */
function nobodyWaits(turn: string): ThroughlineError {
  return new ThroughlineError('conflict', 'Nobody waits for the answer: the process that ran the turn has ended.', {
    hint: `The next prompt, or "throughline serve", ends the turn as interrupted; "throughline retry ${turn}" then sends the prompt again.`,
  });
}

function isOver(turn: TurnRow): boolean {
  return hasEnded(turn.state) || (turn.cancelRequested === 1 && turn.state !== 'queued');
}

/** Notes that the answer of a turn was delivered. That is no event of the conversation. */
export function* setDelivered(_: StepTx, owner: string, id: string): Steps<Turn> {
  const row = yield* turnRow(owner, id);
  // It has no answer: the turn that replaces it has one.
  if (row.replacedBy !== null) return yield* readTurn(row);
  checkDelivered(row);
  if (row.delivered === 0) yield* run(DELIVERED, row.no);
  return yield* readTurn({ ...row, delivered: 1 });
}

/**
 * Ends a turn that has not begun: at once, and outside of the history. `queue`: it ends by a change of the queue. When it is replaced,
 * its answer is no longer pending; that of the turn which replaces it is.
 */
function* endQueued(
  tx: StepTx,
  ledger: SharedLedger,
  turn: TurnRow,
  by: string,
  queue: { readonly replacedBy?: string | null } = {},
): Steps<void> {
  const { row } = ledger;
  const { replacedBy = null } = queue;
  const failure = cancelledBy(by, replacedBy);
  ledger.append('turn.cancel_requested', turn, { n: turn.n, by });
  yield* run(CANCEL, JSON.stringify(failure), tx.now, replacedBy, turn.no);
  if (replacedBy !== null) yield* run(NOT_PENDING, turn.no);
  ledger.append('turn.ended', turn, { n: turn.n, outcome: 'cancelled', failure, reply: '', usage: NO_USAGE, ...queue });
  row.pending -= 1;
  if (row.pending === 0 && row.worker === null) row.ready_at = null;
  ledger.restate({ outcome: 'cancelled', failure });
  ledger.touch();
}

type Change = Requeue['changes'][number];
type Result = Omit<Requeued, 'duplicate'>;

/**
 * Runs under the lock of the conversation, as the beginning of a turn does. So a worker that begins one of these turns at the same moment is
 * either earlier, and this throws because the queue has changed, or later.
 */
export function* requeue(tx: LedgerTx, owner: string, request: Requeue): Steps<Requeued> {
  const { conversation, changes, requestId, by } = request;
  const ledger = yield* act(() => tx.ledgerOf(owner, conversation));
  const { conv } = ledger.row;
  const asked = canonicalHash([conversation, changes.map(({ id: _, ...change }) => change)]);
  const known = yield* findResult(owner, requestId, asked);
  if (known !== null) return { ...known, duplicate: true };

  const result = yield* carryOut(tx, ledger, yield* namedTurns(conv, changes), by);
  if (requestId !== null) {
    const remembered = changed(REMEMBER, owner, conv, requestId, asked, JSON.stringify(result));
    yield* orTaken(tx, remembered, () => new Collision());
  }
  return { ...result, duplicate: false };
}

function* findResult(owner: string, requestId: string | null, asked: Uint8Array): Steps<Result | null> {
  if (requestId === null) return null;
  const known = yield* one<{ request_hash: Uint8Array; result: string }>(KNOWN, owner, requestId);
  if (known === undefined) return null;
  checkRepeated(requestId, known.request_hash, asked);
  return JSON.parse(known.result);
}

interface Named extends Change {
  readonly no: number;
  readonly n: number;
}

/** Throws unless the caller names exactly the turns that are queued. */
function* namedTurns(conv: number, changes: readonly Change[]): Steps<Named[]> {
  const rows = yield* all<{ no: number; id: string; n: number }>(QUEUE, conv);
  const queue = new Map(rows.map((row) => [row.id, row]));
  const named: Named[] = [];
  const gone: TurnRow[] = [];
  for (const change of changes) {
    const queued = queue.get(change.turn);
    if (queued === undefined) gone.push(yield* rowOf(conv, change.turn));
    else named.push({ ...change, no: queued.no, n: queued.n });
    queue.delete(change.turn);
  }
  const unnamed = [...queue.values()].map(({ n }) => n);
  if (gone.length > 0 || unnamed.length > 0) throw queueChanged({ gone, unnamed });
  return named;
}

function* rowOf(conv: number, id: string): Steps<TurnRow> {
  const row = yield* one<TurnRow>(BY_ID, id, conv);
  if (row === undefined) throw noSuchTurn(id);
  return row;
}

function* carryOut(tx: LedgerTx, ledger: SharedLedger, named: readonly Named[], by: string): Steps<Result> {
  const { row } = ledger;
  const { keep, replace, drop } = planQueue(named);
  const old: Replaced[] = [];
  for (const change of replace) old.push({ ...change, row: yield* rowOf(row.conv, change.turn) });
  const ended = old.map(({ id, row: turn }) => ({ turn, replacedBy: id as string | null }));
  for (const { turn } of drop) ended.push({ turn: yield* rowOf(row.conv, turn), replacedBy: null });
  ended.sort((a, b) => a.turn.n - b.turn.n);
  for (const { turn } of ended) yield* checkNoTask(turn);
  // The conversation keeps its place among those that wait, also when all of its turns are replaced.
  const readyAt = row.ready_at;
  for (const { turn, replacedBy } of ended) yield* endQueued(tx, ledger, turn, by, { replacedBy });
  if (old.length > 0) row.ready_at = readyAt;
  const added: Result['queue'][number][] = [];
  for (const change of old) added.push(yield* replaceTurn(ledger, change, by));
  if (ended.length > 0) {
    ledger.touch();
    yield* act(() => ledger.save());
  }
  return {
    queue: [...keep.map(({ turn, n }) => ({ turnId: turn, n, replaces: null })), ...added],
    cancelled: ended.map(({ turn: { id, n }, replacedBy }) => ({ turnId: id, n, replacedBy })),
  };
}

type Replaced = Named & { readonly row: TurnRow };

function* replaceTurn(ledger: SharedLedger, change: Replaced, by: string) {
  const { id, turn, prompt } = change;
  const { next_n: n, owner } = ledger.row;
  const { agent, retryOf, options, prompt: before } = yield* readTurn(change.row);
  if (prompt !== undefined) titleFromPrompt(ledger, prompt);
  const kept = { requestId: null, prompt: prompt ?? before, options, retryOf, replaces: turn };
  yield* addTurn(ledger, { id, ...kept, ...(by !== owner && { by }) }, agent);
  return { turnId: id, n, replaces: turn };
}

/** Throws `refused` for the turn of a task: the task waits for it, and decides by its end how to continue. */
function* checkNoTask({ n, requestId, owner }: TurnRow): Steps<void> {
  const task = taskOfRequest(requestId);
  if (task === null || (yield* one(TASK, task, owner)) === undefined) return;
  throw new ThroughlineError('refused', `Turn ${n} belongs to the task ${task} and cannot be changed.`, {
    hint: 'Keep it before all turns that you change, or cancel the task.',
  });
}
