import type { TaskStore } from '../../../ports/store/tasks.ts';
import { type Access, LONG, type Tx } from '../server/access.ts';
import { alone, findTask, lastTaskSeq, taskEvents } from './task-board.ts';
import { cancelTask, commitTask, retryTask, taskUsage } from './task-changes.ts';
import { claimableTask, claimTask, forgetHolder, releaseTask, renewTasks, taskHolders } from './task-claim.ts';
import { addTasks, listTasks } from './task-plans.ts';

/** Tasks, in the same database as conversations. */
export function taskStore(access: Access): TaskStore {
  // This process waits for them on one connection, in whatever number of verbs.
  const changing =
    <A extends unknown[], T>(verb: (tx: Tx, ...args: A) => Promise<T>) =>
    (...args: A): Promise<T> =>
      access.writeIn('tasks', (tx) => tx.begun.then(() => alone(verb)(tx, ...args)), LONG);
  const claim = changing(claimTask);
  return {
    add: changing(addTasks),
    find: access.reading(findTask),
    list: access.reading(listTasks),
    events: access.reading(taskEvents),
    lastSeq: access.reading(lastTaskSeq),
    usage: access.reading(taskUsage),
    requestCancel: changing(cancelTask),
    retry: changing(retryTask),
    async claim(request) {
      // A transaction starts only if there is something to claim.
      const found = await access.read(async (sql) => claimableTask(sql, request, (await access.times(sql)).monotonic));
      return found === null ? null : claim(request);
    },
    renew: access.writing(renewTasks),
    release: changing(releaseTask),
    holders: () => access.read(async (sql) => taskHolders(sql, (await access.times(sql)).monotonic)),
    forgetHolder: changing(forgetHolder),
    commit: changing(commitTask),
  };
}
