import type { Task } from '../../../core/tasks/task.ts';
import { firstProgress } from '../../../core/tasks/task-progress.ts';
import type { NewPlan, NewTask, TaskFilter } from '../../../ports/store/tasks.ts';
import { planHash, repeatedTasks, type TaskRow, taskOf, taskSessionTaken } from '../../shared/tasks.ts';
import { pageOfReadable } from '../conversations/content.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { violated } from '../server/faults.ts';
import { appendTaskEvent, taskRow } from './task-board.ts';

const OF_PLAN = 'SELECT * FROM tasks WHERE owner = $1 AND plan = $2 ORDER BY place_in_plan';
const INSERT = `
  INSERT INTO tasks (owner, id, plan, plan_hash, place_in_plan, place, parallel, name, milestone, session, spec, progress, state,
    epoch, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0, $14) RETURNING no`;
const INSERT_AFTER = 'INSERT INTO task_after (task, first, owner) VALUES ($1, $2, $3)';
const NEWEST = `
  SELECT * FROM tasks WHERE owner = $1 AND no < $2 AND ($3::text[] IS NULL OR state = ANY($3)) AND ($4::text IS NULL OR milestone = $4)
  ORDER BY no DESC LIMIT $5`;

export async function addTasks(tx: Tx, owner: string, plan: NewPlan): Promise<{ tasks: Task[]; duplicate: boolean }> {
  const hash = planHash(plan);
  const known = await tx.sql.all<TaskRow>(OF_PLAN, owner, plan.plan);
  if (known.length > 0) return { tasks: repeatedTasks(known, hash), duplicate: true };
  const numbers = new Map<string, number>();
  for (const [i, task] of plan.tasks.entries()) numbers.set(task.id, await insert(tx, owner, plan, task, i, hash));
  for (const task of plan.tasks) {
    for (const first of new Set(task.after)) {
      tx.sql.run(INSERT_AFTER, numbers.get(task.id) ?? 0, numbers.get(first) ?? 0, owner);
    }
  }
  const tasks: Task[] = [];
  for (const { id } of plan.tasks) tasks.push(taskOf(await taskRow(tx.sql, owner, id)));
  return { tasks, duplicate: false };
}

async function insert(
  tx: Tx,
  owner: string,
  { plan, place, parallel }: NewPlan,
  task: NewTask,
  i: number,
  hash: Uint8Array,
): Promise<number> {
  const { id, ...spec } = task;
  const { name, milestone, session, goal, agent } = task;
  const state = task.after.length > 0 ? 'waiting' : 'queued';
  const values = [owner, id, plan, hash, i, place, parallel, name, milestone, session];
  const bodies = [JSON.stringify(spec), JSON.stringify(firstProgress(task)), state, tx.now];
  const added = await tx.sql.one<{ no: number }>(INSERT, ...values, ...bodies).catch((error: unknown) => {
    throw violated(error) === null ? error : taskSessionTaken(session, error);
  });
  const no = added?.no as number;
  const payload = { name, goal, milestone, agent, state } as const;
  await appendTaskEvent(tx, { no, id, owner }, { kind: 'task.added', payload });
  return no;
}

export async function listTasks(
  sql: Sql,
  owner: string,
  { states, milestone }: TaskFilter,
  { limit, before }: { limit: number; before?: string },
): Promise<Task[]> {
  const last = before === undefined ? Number.MAX_SAFE_INTEGER : (await taskRow(sql, owner, before)).no;
  const most = Math.max(0, limit);
  const fetch = ({ no }: Pick<TaskRow, 'no'> = { no: last }) =>
    sql.all<TaskRow>(NEWEST, owner, no, states ?? null, milestone ?? null, most);
  return pageOfReadable(sql, most, fetch, taskOf);
}
