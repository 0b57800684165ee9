import type { Task } from '../../../core/tasks/task.ts';
import type { TaskFilter, TaskStore } from '../../../ports/store/tasks.ts';
import { planHash, type TaskRow, taskOf } from '../../shared/tasks.ts';
import type { Steps, StepTx } from '../../shared/verbs/steps.ts';
import { findTask, lastTaskSeq, taskEvents, taskRow, tasksOfPlan, taskUsage } from '../../shared/verbs/task-board.ts';
import { addTasks, cancelTask, commitTask, retryTask } from '../../shared/verbs/task-changes.ts';
import { forgetHolder, releaseTask, renewTasks, taskHolders } from '../../shared/verbs/task-lease.ts';
import { pageOfReadable } from '../conversations/content.ts';
import { type Access, LONG, type Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { reader, stepAccess, writer } from '../steps.ts';
import { claimableTask, claimTask } from './task-claim.ts';

/**
 * Every transaction that changes tasks takes this lock, because limits and fairness count over all owners and servers. A task changes
 * rarely, compared with its turns, so few transactions wait for it. Renewing a lease does not take it.
 */
export const LOCK_TASKS = 'SELECT pg_advisory_xact_lock(7448330122)';
const NEWEST = `
  SELECT * FROM tasks WHERE owner = $1 AND no < $2 AND ($3::text[] IS NULL OR state = ANY($3)) AND ($4::text IS NULL OR milestone = $4)
  ORDER BY no DESC LIMIT $5`;

/** Tasks, in the same database as conversations. */
export function taskStore(access: Access): TaskStore {
  const { reading, lookingAt, writing } = stepAccess(access);
  // However many verbs wait for the lock, this process uses one connection for them.
  const alone = <T>(verb: (tx: Tx) => Promise<T>): Promise<T> =>
    access.writeIn(
      'tasks',
      async (tx) => {
        await tx.begun;
        tx.sql.run(LOCK_TASKS);
        return verb(tx);
      },
      LONG,
    );
  const changing =
    <A extends unknown[], T>(verb: (tx: StepTx, ...args: A) => Steps<T>) =>
    (...args: A): Promise<T> =>
      alone((tx) => writer(verb)(tx, ...args));
  const add = changing(addTasks);
  return {
    add: (owner, plan) => add(owner, plan, planHash(plan)),
    find: reading(findTask),
    plan: reading(tasksOfPlan),
    list: access.reading(listTasks),
    events: reading(taskEvents),
    lastSeq: reading(lastTaskSeq),
    usage: reading(taskUsage),
    requestCancel: changing(cancelTask),
    retry: changing(retryTask),
    async claim(request) {
      // A transaction starts only if there is something to claim.
      const found = await access.read(async (sql) => claimableTask(sql, request, (await access.times(sql)).monotonic));
      return found === null ? null : alone((tx) => claimTask(tx, request));
    },
    renew: writing(renewTasks),
    release: changing(releaseTask),
    holders: lookingAt(taskHolders),
    forgetHolder: changing(forgetHolder),
    commit: changing(commitTask),
  };
}

async function listTasks(
  sql: Sql,
  owner: string,
  { states, milestone }: TaskFilter,
  { limit, before }: { limit: number; before?: string },
): Promise<Task[]> {
  const last = before === undefined ? Number.MAX_SAFE_INTEGER : (await reader(taskRow)(sql, owner, before)).no;
  const most = Math.max(0, limit);
  const fetch = ({ no }: Pick<TaskRow, 'no'> = { no: last }) =>
    sql.all<TaskRow>(NEWEST, owner, no, states ?? null, milestone ?? null, most);
  return pageOfReadable(sql, most, fetch, taskOf);
}
