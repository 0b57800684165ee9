import { noSuchTask } from '../../../core/errors.ts';
import type { UsagePage } from '../../../core/input/usage-page.ts';
import type { Task, TaskEvent, TaskEventDraft, TaskEventKind } from '../../../core/tasks/task.ts';
import type { LastTaskUsage, TaskUsageRow } from '../../../ports/store/tasks.ts';
import { LAST_DAY, pageOf } from '../page.ts';
import { isName } from '../rows.ts';
import { type TaskRow, taskOf } from '../tasks.ts';
import { all, each, insert, LIMIT, one, type Steps, type StepTx } from './steps.ts';

const BY_ID = 'SELECT * FROM tasks WHERE id = ? AND owner = ?';
const BY_NAME = 'SELECT * FROM tasks WHERE owner = ? AND name = ? ORDER BY no DESC LIMIT 1';
export const OF_PLAN = 'SELECT * FROM tasks WHERE owner = ? AND plan = ? ORDER BY place_in_plan';
const NEXT_SEQS = `
  INSERT INTO boards (owner, next_seq, served) VALUES (?1, 1 + ?2, 0)
  ON CONFLICT (owner) DO UPDATE SET next_seq = boards.next_seq + ?2 RETURNING next_seq - ?2 AS seq`;
const LAST_SEQ = 'SELECT next_seq - 1 AS seq FROM boards WHERE owner = ?';
const INSERT_EVENT = 'INSERT INTO task_events (owner, seq, task, kind, at, payload) VALUES (?, ?, ?, ?, ?, ?)';
const EVENT = 'SELECT e.seq, t.id AS task, e.kind, e.at, e.payload FROM task_events e JOIN tasks t ON t.no = e.task';
const EVENTS = `${EVENT} WHERE e.owner = ? AND e.seq > ? ORDER BY e.seq ${LIMIT}`;
const EVENTS_OF = `${EVENT} WHERE e.task = ? AND e.seq > ? ORDER BY e.seq ${LIMIT}`;
const USAGE = `
  SELECT u.day, t.id AS task, t.name, t.milestone, u.turns, u.usage FROM task_usage u JOIN tasks t ON t.no = u.task
  WHERE u.owner = ? AND u.day >= ? AND (u.day, u.task) < (?, ?) ORDER BY u.day DESC, u.task DESC ${LIMIT}`;

export function* findTask(owner: string, idOrName: string): Steps<Task | null> {
  if (!isName(idOrName)) return null;
  const row = (yield* one<TaskRow>(BY_ID, idOrName, owner)) ?? (yield* one<TaskRow>(BY_NAME, owner, idOrName));
  return row === undefined ? null : taskOf(row);
}

export function* tasksOfPlan(owner: string, plan: string): Steps<Task[]> {
  return isName(plan) ? (yield* all<TaskRow>(OF_PLAN, owner, plan)).map(taskOf) : [];
}

/** The owner's task. Throws `not_found`. */
export function* taskRow(owner: string, id: string): Steps<TaskRow> {
  const row = yield* one<TaskRow>(BY_ID, id, owner);
  if (row === undefined) throw noSuchTask(id);
  return row;
}

/** Gives the events the owner's next numbers. Returns the number of the last one in the table; null: there is none. */
export function* appendTaskEvents(
  tx: StepTx,
  task: Pick<TaskRow, 'no' | 'id' | 'owner'>,
  ...drafts: readonly TaskEventDraft[]
): Steps<number | null> {
  if (drafts.length === 0) return null;
  const { seq } = (yield* one<{ seq: number }>(NEXT_SEQS, task.owner, drafts.length)) as { seq: number };
  let last: number | null = null;
  for (const [i, { kind, payload }] of drafts.entries()) {
    last = yield* insert(INSERT_EVENT, task.owner, seq + i, task.no, kind, tx.now, JSON.stringify(payload));
  }
  tx.moved(task.id);
  return last;
}

export function* lastTaskSeq(owner: string): Steps<number> {
  return (yield* one<{ seq: number }>(LAST_SEQ, owner))?.seq ?? 0;
}

export function* taskEvents(
  owner: string,
  { after, limit, bytes, task }: { after: number; limit: number; bytes?: number; task?: string },
): Steps<TaskEvent[]> {
  type Row = { seq: number; task: string; kind: TaskEventKind; at: number; payload: string };
  const [text, of] = task === undefined ? [EVENTS, owner] : [EVENTS_OF, (yield* taskRow(owner, task)).no];
  const rows = yield* each<Row>(text, of, after, Math.max(0, limit));
  return pageOf(rows, (row) => ({ ...row, payload: JSON.parse(row.payload) }), { bytes });
}

export function* taskUsage(owner: string, page: UsagePage<LastTaskUsage> = {}): Steps<TaskUsageRow[]> {
  const { since = '', limit, before } = page;
  const last = before === undefined ? [LAST_DAY, 0] : [before.day, (yield* taskRow(owner, before.task)).no];
  type Row = Omit<TaskUsageRow, 'usage'> & { usage: string };
  const rows = yield* each<Row>(USAGE, owner, since, ...last, limit ?? Number.MAX_SAFE_INTEGER);
  return pageOf(rows, (row) => ({ ...row, usage: JSON.parse(row.usage) }), { limit });
}
