import type { Task } from '../../../core/tasks/task.ts';
import { firstProgress } from '../../../core/tasks/task-progress.ts';
import type { NewPlan, NewTask, TaskFilter, TaskStore } from '../../../ports/store/tasks.ts';
import { pageOf, readable } from '../../shared/page.ts';
import { planHash, repeatedTasks, type TaskRow, taskOf, taskSessionTaken } from '../../shared/tasks.ts';
import type { Access } from '../file/access.ts';
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

/** Hashes the plan first: a long one takes tens of milliseconds for that, and for being stored, and others are served in between. */
export async function addPlan(access: Access, owner: string, plan: NewPlan): ReturnType<TaskStore['add']> {
  const hash = planHash(plan);
  if (plan.tasks.length > SHORT) await new Promise(setImmediate);
  return access.write((tx) => addTasks(tx, owner, plan, hash));
}

const SHORT = 100;

function addTasks(tx: Tx, owner: string, plan: NewPlan, hash: Uint8Array): { tasks: Task[]; duplicate: boolean } {
  const known = tx.db.all<TaskRow>(OF_PLAN, owner, plan.plan);
  if (known.length > 0) return { tasks: repeatedTasks(known, hash), duplicate: true };
  const rows = plan.tasks.map((task, i) => insert(tx, owner, plan, task, i, hash));
  const numbers = new Map(rows.map(({ no, task }) => [task.id, no]));
  for (const [i, task] of plan.tasks.entries()) {
    for (const first of new Set(task.after)) {
      tx.db.run(INSERT_AFTER, rows[i]?.no ?? 0, numbers.get(first) ?? 0, owner);
    }
  }
  return { tasks: rows.map(({ task }) => task), duplicate: false };
}

function insert(
  tx: Tx,
  owner: string,
  { plan, place, parallel }: NewPlan,
  task: NewTask,
  i: number,
  hash: Uint8Array,
): { no: number; task: Task } {
  const { id, name, milestone, session, goal, agent } = task;
  const state = task.after.length > 0 ? 'waiting' : 'queued';
  const { id: _, ...spec } = task;
  const progress = firstProgress(task);
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
    JSON.stringify(progress),
    state,
    tx.now,
  ];
  try {
    const { no } = tx.db.run(INSERT, ...values);
    appendTaskEvent(tx, { no, id, owner }, { kind: 'task.added', payload: { name, goal, milestone, agent, state } });
    const begun = { cancelRequested: false, createdAt: tx.now, startedAt: null, endedAt: null };
    return { no, task: { id, owner, plan, place, ...spec, state, progress, ...begun } };
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
