import type { Task } from '../../../core/tasks/task.ts';
import { firstProgress } from '../../../core/tasks/task-progress.ts';
import type { NewPlan, NewTask, TaskFilter } from '../../../ports/store/tasks.ts';
import { pageOf, readable } from '../../shared/page.ts';
import { planHash, repeatedTasks, type TaskRow, taskOf, taskSessionTaken } from '../../shared/tasks.ts';
import type { Database } from '../file/database.ts';
import { isConstraint } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';
import { appendTaskEvent, taskRow } from './task-board.ts';

const OF_PLAN = 'SELECT * FROM tasks WHERE owner = ? AND plan = ? ORDER BY place_in_plan';
const INSERT = `
  INSERT INTO tasks (owner, id, plan, plan_hash, place_in_plan, place, parallel, name, milestone, session, spec, progress, state,
    epoch, created_at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`;
const INSERT_AFTER = 'INSERT INTO task_after (task, first, owner) VALUES (?, ?, ?)';
const NEWEST = `
  SELECT * FROM tasks WHERE owner = ? AND no < ?
    AND (? IS NULL OR state IN (SELECT value FROM json_each(?))) AND (? IS NULL OR milestone = ?)
  ORDER BY no DESC`;

export function addTasks(tx: Tx, owner: string, plan: NewPlan): { tasks: Task[]; duplicate: boolean } {
  const hash = planHash(plan);
  const known = tx.db.all<TaskRow>(OF_PLAN, owner, plan.plan);
  if (known.length > 0) return { tasks: repeatedTasks(known, hash), duplicate: true };
  const rows = plan.tasks.map((task, i) => insert(tx, owner, plan, task, i, hash));
  const numbers = new Map(rows.map((row) => [row.id, row.no]));
  for (const [i, task] of plan.tasks.entries()) {
    for (const first of new Set(task.after)) {
      tx.db.run(INSERT_AFTER, rows[i]?.no ?? 0, numbers.get(first) ?? 0, owner);
    }
  }
  return { tasks: plan.tasks.map(({ id }) => taskOf(taskRow(tx.db, owner, id))), duplicate: false };
}

function insert(tx: Tx, owner: string, { plan, place, parallel }: NewPlan, task: NewTask, i: number, hash: Uint8Array) {
  const { id, name, milestone, session, goal, agent } = task;
  const state = task.after.length > 0 ? 'waiting' : 'queued';
  const { id: _, ...spec } = task;
  const progress = JSON.stringify(firstProgress(task));
  const values = [
    owner,
    id,
    plan,
    hash,
    i,
    place,
    parallel,
    name,
    milestone,
    session,
    JSON.stringify(spec),
    progress,
    state,
    tx.now,
  ];
  try {
    const { no } = tx.db.run(INSERT, ...values);
    const row = { no, id, owner };
    appendTaskEvent(tx, row, { kind: 'task.added', payload: { name, goal, milestone, agent, state } });
    return row;
  } catch (error) {
    throw isConstraint(error) ? taskSessionTaken(session, error) : error;
  }
}

export function listTasks(
  db: Database,
  owner: string,
  { states, milestone }: TaskFilter,
  { limit, before }: { limit: number; before?: string },
): Task[] {
  const last = before === undefined ? Number.MAX_SAFE_INTEGER : taskRow(db, owner, before).no;
  const of = milestone ?? null;
  const wanted = states === undefined ? null : JSON.stringify(states);
  const rows = db.each<TaskRow>(NEWEST, owner, last, wanted, wanted, of, of);
  return pageOf(readable(db, rows, taskOf), (task) => task, { limit });
}
