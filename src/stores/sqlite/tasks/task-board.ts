import type { Task, TaskEvent, TaskEventDraft, TaskEventKind } from '../../../core/tasks/task.ts';
import { pageOf } from '../../shared/page.ts';
import { noTask, type TaskRow, taskOf } from '../../shared/tasks.ts';
import { type Database, LIMIT } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';

const BY_ID = 'SELECT * FROM tasks WHERE id = ? AND owner = ?';
const BY_NAME = 'SELECT * FROM tasks WHERE owner = ? AND name = ? ORDER BY no DESC LIMIT 1';
const NEXT_SEQS = `
  INSERT INTO boards (owner, next_seq, served) VALUES (?1, 1 + ?2, 0)
  ON CONFLICT (owner) DO UPDATE SET next_seq = next_seq + ?2 RETURNING next_seq - ?2 AS seq`;
const LAST_SEQ = 'SELECT next_seq - 1 AS seq FROM boards WHERE owner = ?';
const INSERT_EVENT = 'INSERT INTO task_events (owner, seq, task, kind, at, payload) VALUES (?, ?, ?, ?, ?, ?)';
const EVENT = 'SELECT e.seq, t.id AS task, e.kind, e.at, e.payload FROM task_events e JOIN tasks t ON t.no = e.task';
const EVENTS = `${EVENT} WHERE e.owner = ? AND e.seq > ? ORDER BY e.seq ${LIMIT}`;
const EVENTS_OF = `${EVENT} WHERE e.task = ? AND e.seq > ? ORDER BY e.seq ${LIMIT}`;

export function findTask(db: Database, owner: string, idOrName: string): Task | null {
  if (!idOrName.isWellFormed()) return null;
  const row = db.one<TaskRow>(BY_ID, idOrName, owner) ?? db.one<TaskRow>(BY_NAME, owner, idOrName);
  return row === undefined ? null : taskOf(row);
}

/** The owner's task. Throws `not_found`. */
export function taskRow(db: Database, owner: string, id: string): TaskRow {
  const row = db.one<TaskRow>(BY_ID, id, owner);
  if (row === undefined) throw noTask(id);
  return row;
}

type TaskName = Pick<TaskRow, 'no' | 'id' | 'owner'>;

/** Gives the event the owner's next number. Returns its number in the table. */
export function appendTaskEvent(tx: Tx, task: TaskName, draft: TaskEventDraft): number {
  return appendTaskEvents(tx, task, [draft]) as number;
}

/** The same for several. Returns the number of the last one; null: there is none. */
export function appendTaskEvents(tx: Tx, task: TaskName, drafts: readonly TaskEventDraft[]): number | null {
  if (drafts.length === 0) return null;
  const { seq } = tx.db.one<{ seq: number }>(NEXT_SEQS, task.owner, drafts.length) as { seq: number };
  let last = null;
  for (const [i, { kind, payload }] of drafts.entries()) {
    last = tx.db.run(INSERT_EVENT, task.owner, seq + i, task.no, kind, tx.now, JSON.stringify(payload)).no;
  }
  tx.moved(task.id, null);
  return last;
}

export function lastTaskSeq(db: Database, owner: string): number {
  return db.one<{ seq: number }>(LAST_SEQ, owner)?.seq ?? 0;
}

export function taskEvents(
  db: Database,
  owner: string,
  { after, limit, bytes, task }: { after: number; limit: number; bytes?: number; task?: string },
): TaskEvent[] {
  type Row = { seq: number; task: string; kind: TaskEventKind; at: number; payload: string };
  const rows =
    task === undefined
      ? db.each<Row>(EVENTS, owner, after, limit)
      : db.each<Row>(EVENTS_OF, taskRow(db, owner, task).no, after, limit);
  return pageOf(rows, (row) => ({ ...row, payload: JSON.parse(row.payload) }), { bytes });
}
