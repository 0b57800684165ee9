import type { Task } from '../../../core/tasks/task.ts';
import type { TaskFilter, TaskStore } from '../../../ports/store/tasks.ts';
import { pageOf, readable } from '../../shared/page.ts';
import { planHash, type TaskRow, taskOf } from '../../shared/tasks.ts';
import { findTask, lastTaskSeq, taskEvents, taskRow, tasksOfPlan, taskUsage } from '../../shared/verbs/task-board.ts';
import { addTasks, cancelTask, commitTask, retryTask } from '../../shared/verbs/task-changes.ts';
import { forgetHolder, releaseTask, renewTasks, taskHolders } from '../../shared/verbs/task-lease.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import { reader, stepAccess, writer } from '../steps.ts';
import { claimableTask, claimTask } from './task-claim.ts';

const NEWEST = `
  SELECT * FROM tasks WHERE owner = ? AND no < ?
    AND (? IS NULL OR state IN (SELECT value FROM json_each(?))) AND (? IS NULL OR milestone = ?)
  ORDER BY no DESC`;
/** A longer plan takes tens of milliseconds to hash, and as long to store: others are served in between. */
const SHORT_PLAN = 100;

/** Tasks, in the same file as conversations. */
export function taskStore(access: Access): TaskStore {
  const { reading, paging, lookingAt, writing } = stepAccess(access);
  const add = writing(addTasks);
  return {
    async add(owner, plan) {
      const hash = planHash(plan);
      if (plan.tasks.length > SHORT_PLAN) await new Promise(setImmediate);
      return add(owner, plan, hash);
    },
    find: reading(findTask),
    plan: reading(tasksOfPlan),
    list: access.paging('listTasks', listTasks),
    events: reading(taskEvents),
    lastSeq: reading(lastTaskSeq),
    usage: paging('taskUsage', taskUsage),
    requestCancel: writing(cancelTask),
    retry: writing(retryTask),
    async claim(request) {
      // A transaction starts only if there is something to claim.
      if ((await access.read((db) => claimableTask(db, request, access.clock.monotonic()))) === null) return null;
      return access.write((tx) => claimTask(tx, request));
    },
    renew: access.renewing(writer(renewTasks)),
    release: writing(releaseTask),
    holders: lookingAt(taskHolders),
    forgetHolder: writing(forgetHolder),
    commit: writing(commitTask),
  };
}

export function listTasks(
  db: Database,
  owner: string,
  { states, milestone }: TaskFilter,
  { limit, before }: { limit: number; before?: string },
): Task[] {
  const last = before === undefined ? Number.MAX_SAFE_INTEGER : reader(taskRow)(db, owner, before).no;
  const of = milestone ?? null;
  const wanted = states === undefined ? null : JSON.stringify(states);
  const rows = db.each<TaskRow>(NEWEST, owner, last, wanted, wanted, of, of);
  return pageOf(readable(db, rows, taskOf), (task) => task, { limit });
}
