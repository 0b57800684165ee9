import { noSuchTurn, ThroughlineError } from '../../../core/errors.ts';
import { MOST_QUEUED, planQueue, queueChanged } from '../../../core/queue.ts';
import { taskOfRequest } from '../../../core/tasks/task-progress.ts';
import type { Requeue, Requeued } from '../../../ports/store/turns.ts';
import { canonicalHash } from '../../shared/content.ts';
import { TURN, type TurnRow } from '../../shared/rows.ts';
import { checkRepeated } from '../../shared/turns.ts';
import { readTurn } from '../conversations/content.ts';
import { titleFromPrompt } from '../conversations/conversations.ts';
import { Ledger } from '../conversations/ledger.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { Collision, violated } from '../server/faults.ts';
import { endQueued } from './end.ts';
import { addTurn } from './enqueue.ts';

const QUEUE = `
  SELECT no, id, n FROM turns WHERE conv = $1 AND ended_at IS NULL AND state = 'queued' ORDER BY n LIMIT ${MOST_QUEUED + 1}`;
const BY_ID = `${TURN} WHERE t.id = $1 AND t.conv = $2`;
const TASK = 'SELECT 1 FROM tasks WHERE id = $1 AND owner = $2';
const KNOWN = 'SELECT request_hash, result FROM requeues WHERE owner = $1 AND request_id = $2';
const REMEMBER = 'INSERT INTO requeues (owner, conv, request_id, request_hash, result) VALUES ($1, $2, $3, $4, $5)';

type Change = Requeue['changes'][number];
type Result = Omit<Requeued, 'duplicate'>;

/**
 * Under the lock of the conversation, as is the beginning of a turn: a worker that takes one of them at the same moment comes before,
 * and then the list is not as the caller saw it, or after.
 */
export async function requeue(tx: Tx, owner: string, request: Requeue): Promise<Requeued> {
  const { conversation, changes, requestId, by } = request;
  const ledger = await Ledger.of(tx, owner, conversation);
  const asked = canonicalHash([conversation, changes.map(({ id: _, ...change }) => change)]);
  const known = await findResult(tx.sql, owner, requestId, asked);
  if (known !== null) return { ...known, duplicate: true };

  const result = await carryOut(ledger, await namedTurns(tx.sql, ledger.row.conv, changes), by);
  if (requestId !== null) await remember(ledger, requestId, asked, result);
  return { ...result, duplicate: false };
}

async function findResult(
  sql: Sql,
  owner: string,
  requestId: string | null,
  asked: Uint8Array,
): Promise<Result | null> {
  if (requestId === null) return null;
  const known = await sql.one<{ request_hash: Uint8Array; result: string }>(KNOWN, owner, requestId);
  if (known === undefined) return null;
  checkRepeated(requestId, known.request_hash, asked);
  return JSON.parse(known.result);
}

async function remember({ tx, row }: Ledger, requestId: string, asked: Uint8Array, result: Result): Promise<void> {
  try {
    await tx.sql.changed(REMEMBER, row.owner, row.conv, requestId, asked, JSON.stringify(result));
  } catch (error) {
    throw violated(error) === null ? error : new Collision();
  }
}

interface Named extends Change {
  readonly no: number;
  readonly n: number;
}

/** The turns that the caller names are exactly those that are queued, or this throws. */
async function namedTurns(sql: Sql, conv: number, changes: readonly Change[]): Promise<Named[]> {
  const rows = await sql.all<{ no: number; id: string; n: number }>(QUEUE, conv);
  const queue = new Map(rows.map((row) => [row.id, row]));
  const named: Named[] = [];
  const gone: TurnRow[] = [];
  for (const change of changes) {
    const queued = queue.get(change.turn);
    if (queued === undefined) gone.push(await rowOf(sql, conv, change.turn));
    else named.push({ ...change, no: queued.no, n: queued.n });
    queue.delete(change.turn);
  }
  const unnamed = [...queue.values()].map(({ n }) => n);
  if (gone.length > 0 || unnamed.length > 0) throw queueChanged({ gone, unnamed });
  return named;
}

async function rowOf(sql: Sql, conv: number, id: string): Promise<TurnRow> {
  const row = await sql.one<TurnRow>(BY_ID, id, conv);
  if (row === undefined) throw noSuchTurn(id);
  return row;
}

async function carryOut(ledger: Ledger, named: readonly Named[], by: string): Promise<Result> {
  const { tx, row } = ledger;
  const { keep, replace, drop } = planQueue(named);
  const read = (turn: string) => rowOf(tx.sql, row.conv, turn);
  const old: (Named & { row: TurnRow })[] = [];
  for (const change of replace) old.push({ ...change, row: await read(change.turn) });
  const dropped: TurnRow[] = [];
  for (const { turn } of drop) dropped.push(await read(turn));
  const ended = [
    ...old.map(({ id, row: turn }) => ({ turn, replacedBy: id as string | null })),
    ...dropped.map((turn) => ({ turn, replacedBy: null })),
  ].toSorted((a, b) => a.turn.n - b.turn.n);
  for (const { turn } of ended) await checkNoTask(tx.sql, turn);
  // It keeps its place among the conversations that wait, also when all of its turns are replaced.
  const readyAt = row.ready_at;
  for (const { turn, replacedBy } of ended) await endQueued(ledger, turn, by, { replacedBy });
  if (old.length > 0) row.ready_at = readyAt;
  const added: Result['queue'][number][] = [];
  for (const change of old) added.push(await replaceTurn(ledger, change, by));
  if (ended.length > 0) {
    ledger.touch();
    await ledger.save();
  }
  return {
    queue: [...keep.map(({ turn, n }) => ({ turnId: turn, n, replaces: null })), ...added],
    cancelled: ended.map(({ turn: { id, n }, replacedBy }) => ({ turnId: id, n, replacedBy })),
  };
}

async function replaceTurn(ledger: Ledger, change: Named & { row: TurnRow }, by: string) {
  const { tx, row } = ledger;
  const { id, turn, prompt } = change;
  const n = row.next_n;
  const { agent, retryOf, options, prompt: before } = await readTurn(tx.sql, change.row);
  if (prompt !== undefined) await titleFromPrompt(ledger, prompt);
  const kept = { requestId: null, prompt: prompt ?? before, options, retryOf, replaces: turn };
  await addTurn(ledger, { id, ...kept, ...(by !== row.owner && { by }) }, agent, null);
  return { turnId: id, n, replaces: turn };
}

/** A task waits for its turn, and decides by its end how to go on. */
async function checkNoTask(sql: Sql, { n, requestId, owner }: TurnRow): Promise<void> {
  const task = taskOfRequest(requestId);
  if (task === null || (await sql.one(TASK, task, owner)) === undefined) return;
  throw new ThroughlineError('refused', `Turn ${n} belongs to the task ${task}: it stays as it is.`, {
    hint: 'Keep it before all turns that you change, or cancel the task.',
  });
}
