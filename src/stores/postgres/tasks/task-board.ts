import type { Task, TaskEvent, TaskEventDraft, TaskEventKind } from '../../../core/tasks/task.ts';
import { pageOf } from '../../shared/page.ts';
import { noTask, type TaskRow, taskOf } from '../../shared/tasks.ts';
import { isName } from '../conversations/conversations.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';

/**
 * Whoever changes tasks has them alone: limits and fairness are over all owners and servers, and a task changes seldom, beside the turns
 * that work on it. Renewing leases does not take it.
 */
const LOCK = 'SELECT pg_advisory_xact_lock(7448330122)';
const BY_ID = 'SELECT * FROM tasks WHERE id = $1 AND owner = $2';
const BY_NAME = 'SELECT * FROM tasks WHERE owner = $1 AND name = $2 ORDER BY no DESC LIMIT 1';
const NEXT_SEQ = `
  INSERT INTO boards (owner, next_seq, served) VALUES ($1, 2, 0)
  ON CONFLICT (owner) DO UPDATE SET next_seq = boards.next_seq + 1 RETURNING next_seq - 1 AS seq`;
const LAST_SEQ = 'SELECT next_seq - 1 AS seq FROM boards WHERE owner = $1';
const INSERT_EVENT = `
  INSERT INTO task_events (owner, seq, task, kind, at, payload) VALUES ($1, $2, $3, $4, $5, $6) RETURNING no`;
const EVENT = 'SELECT e.seq, t.id AS task, e.kind, e.at, e.payload FROM task_events e JOIN tasks t ON t.no = e.task';
const EVENTS = `${EVENT} WHERE e.owner = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3`;
const EVENTS_OF = `${EVENT} WHERE e.task = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3`;

/** A verb that changes tasks. */
export function alone<A extends unknown[], T>(verb: (tx: Tx, ...args: A) => Promise<T>) {
  return async (tx: Tx, ...args: A): Promise<T> => {
    tx.sql.run(LOCK);
    return verb(tx, ...args);
  };
}

export async function findTask(sql: Sql, owner: string, idOrName: string): Promise<Task | null> {
  if (!isName(idOrName)) return null;
  const row = (await sql.one<TaskRow>(BY_ID, idOrName, owner)) ?? (await sql.one<TaskRow>(BY_NAME, owner, idOrName));
  return row === undefined ? null : taskOf(row);
}

/** The owner's task. Throws `not_found`. */
export async function taskRow(sql: Sql, owner: string, id: string): Promise<TaskRow> {
  const row = await sql.one<TaskRow>(BY_ID, id, owner);
  if (row === undefined) throw noTask(id);
  return row;
}

/** Gives the event the owner's next number. Returns its number in the table. */
export async function appendTaskEvent(
  tx: Tx,
  task: Pick<TaskRow, 'no' | 'id' | 'owner'>,
  draft: TaskEventDraft,
): Promise<number> {
  const { seq } = (await tx.sql.one<{ seq: number }>(NEXT_SEQ, task.owner)) as { seq: number };
  const values = [task.owner, seq, task.no, draft.kind, tx.now, JSON.stringify(draft.payload)];
  const added = await tx.sql.one<{ no: number }>(INSERT_EVENT, ...values);
  tx.moved(task.id);
  return added?.no as number;
}

export async function lastTaskSeq(sql: Sql, owner: string): Promise<number> {
  return (await sql.one<{ seq: number }>(LAST_SEQ, owner))?.seq ?? 0;
}

export async function taskEvents(
  sql: Sql,
  owner: string,
  { after, limit, bytes, task }: { after: number; limit: number; bytes?: number; task?: string },
): Promise<TaskEvent[]> {
  type Row = { seq: number; task: string; kind: TaskEventKind; at: number; payload: string };
  const most = Math.max(0, limit);
  const rows =
    task === undefined
      ? await sql.all<Row>(EVENTS, owner, after, most)
      : await sql.all<Row>(EVENTS_OF, (await taskRow(sql, owner, task)).no, after, most);
  return pageOf(rows, (row) => ({ ...row, payload: JSON.parse(row.payload) }), { bytes });
}
