import { noSuchTurn, ThroughlineError } from '../../../core/errors.ts';
import { MOST_QUEUED, planQueue, queueChanged } from '../../../core/queue.ts';
import { taskOfRequest } from '../../../core/tasks/task-progress.ts';
import type { Requeue, Requeued } from '../../../ports/store/turns.ts';
import { canonicalHash } from '../../shared/content.ts';
import { TURN, type TurnRow, turnOf } from '../../shared/rows.ts';
import { checkRepeated } from '../../shared/turns.ts';
import { titleFromPrompt } from '../conversations/conversations.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { endQueued } from './end.ts';
import { addTurn } from './enqueue.ts';

const QUEUE = `
  SELECT no, id, n FROM turns WHERE conv = ? AND ended_at IS NULL AND state = 'queued' ORDER BY n LIMIT ${MOST_QUEUED + 1}`;
const BY_ID = `${TURN} WHERE t.id = ? AND t.conv = ?`;
const TASK = 'SELECT 1 FROM tasks WHERE id = ? AND owner = ?';
const KNOWN = 'SELECT request_hash, result FROM requeues WHERE owner = ? AND request_id = ?';
const REMEMBER = 'INSERT INTO requeues (owner, conv, request_id, request_hash, result) VALUES (?, ?, ?, ?, ?)';

type Change = Requeue['changes'][number];
type Result = Omit<Requeued, 'duplicate'>;

/**
 * In one transaction, as is the beginning of a turn: a worker that takes one of them at the same moment comes before, and then the
 * list is not as the caller saw it, or after.
 */
export function requeue(tx: Tx, owner: string, request: Requeue): Requeued {
  const { conversation, changes, requestId, by } = request;
  const ledger = Ledger.of(tx, owner, conversation);
  const asked = canonicalHash([conversation, changes.map(({ id: _, ...change }) => change)]);
  const known = findResult(tx.db, owner, requestId, asked);
  if (known !== null) return { ...known, duplicate: true };

  const result = carryOut(ledger, namedTurns(tx.db, ledger.row.conv, changes), by);
  if (requestId !== null) {
    tx.db.run(REMEMBER, owner, ledger.row.conv, requestId, asked, JSON.stringify(result));
  }
  return { ...result, duplicate: false };
}

function findResult(db: Database, owner: string, requestId: string | null, asked: Uint8Array): Result | null {
  if (requestId === null) return null;
  const known = db.one<{ request_hash: Uint8Array; result: string }>(KNOWN, owner, requestId);
  if (known === undefined) return null;
  checkRepeated(requestId, known.request_hash, asked);
  return JSON.parse(known.result);
}

interface Named extends Change {
  readonly no: number;
  readonly n: number;
}

/** The turns that the caller names are exactly those that are queued, or this throws. */
function namedTurns(db: Database, conv: number, changes: readonly Change[]): Named[] {
  const queue = new Map(db.all<{ no: number; id: string; n: number }>(QUEUE, conv).map((row) => [row.id, row]));
  const named: Named[] = [];
  const gone: TurnRow[] = [];
  for (const change of changes) {
    const queued = queue.get(change.turn);
    if (queued === undefined) gone.push(rowOf(db, conv, change.turn));
    else named.push({ ...change, no: queued.no, n: queued.n });
    queue.delete(change.turn);
  }
  const unnamed = [...queue.values()].map(({ n }) => n);
  if (gone.length > 0 || unnamed.length > 0) throw queueChanged({ gone, unnamed });
  return named;
}

function rowOf(db: Database, conv: number, id: string): TurnRow {
  const row = db.one<TurnRow>(BY_ID, id, conv);
  if (row === undefined) throw noSuchTurn(id);
  return row;
}

function carryOut(ledger: Ledger, named: readonly Named[], by: string): Result {
  const { tx, row } = ledger;
  const { keep, replace, drop } = planQueue(named);
  const old = replace.map((change) => ({ ...change, row: rowOf(tx.db, row.conv, change.turn) }));
  const dropped = drop.map(({ turn }) => rowOf(tx.db, row.conv, turn));
  const ended = [
    ...old.map(({ id, row: turn }) => ({ turn, replacedBy: id })),
    ...dropped.map((turn) => ({ turn, replacedBy: null })),
  ].toSorted((a, b) => a.turn.n - b.turn.n);
  for (const { turn } of ended) checkNoTask(tx.db, turn);
  // It keeps its place among the conversations that wait, also when all of its turns are replaced.
  const readyAt = row.ready_at;
  for (const { turn, replacedBy } of ended) endQueued(ledger, turn, by, { replacedBy });
  if (old.length > 0) row.ready_at = readyAt;
  const added = old.map(({ id, turn, prompt, row: before }) => {
    const n = row.next_n;
    const { agent, retryOf, options, prompt: given } = turnOf(tx.db, before);
    if (prompt !== undefined) titleFromPrompt(ledger, prompt);
    const kept = { requestId: null, prompt: prompt ?? given, options, retryOf, replaces: turn };
    addTurn(ledger, { id, ...kept, ...(by !== row.owner && { by }) }, agent, null);
    return { turnId: id, n, replaces: turn };
  });
  if (ended.length > 0) {
    ledger.touch();
    ledger.save();
  }
  return {
    queue: [...keep.map(({ turn, n }) => ({ turnId: turn, n, replaces: null })), ...added],
    cancelled: ended.map(({ turn: { id, n }, replacedBy }) => ({ turnId: id, n, replacedBy })),
  };
}

/** A task waits for its turn, and decides by its end how to go on. */
function checkNoTask(db: Database, { n, requestId, owner }: TurnRow): void {
  const task = taskOfRequest(requestId);
  if (task === null || db.one(TASK, task, owner) === undefined) return;
  throw new ThroughlineError('refused', `Turn ${n} belongs to the task ${task}: it stays as it is.`, {
    hint: 'Keep it before all turns that you change, or cancel the task.',
  });
}
