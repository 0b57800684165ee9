import type { TaskStore } from '../../../ports/store/tasks.ts';
import type { Access } from '../file/access.ts';
import { findTask, lastTaskSeq, taskEvents } from './task-board.ts';
import { cancelTask, commitTask, retryTask, taskUsage } from './task-changes.ts';
import { claimableTask, claimTask, forgetHolder, releaseTask, renewTasks, taskHolders } from './task-claim.ts';
import { addPlan, listTasks } from './task-plans.ts';

/** Tasks, in the same file as conversations. */
export function taskStore(access: Access): TaskStore {
  return {
    add: (...args) => addPlan(access, ...args),
    find: access.reading(findTask),
    list: access.paging('listTasks', listTasks),
    events: access.reading(taskEvents),
    lastSeq: access.reading(lastTaskSeq),
    usage: access.paging('taskUsage', taskUsage),
    requestCancel: access.writing(cancelTask),
    retry: access.writing(retryTask),
    async claim(request) {
      // A transaction starts only if there is something to claim.
      if ((await access.read((db) => claimableTask(db, request, access.clock.monotonic()))) === null) return null;
      return access.write((tx) => claimTask(tx, request));
    },
    renew: access.renewing(renewTasks),
    release: access.writing(releaseTask),
    holders: () => access.read((db) => taskHolders(db, access.clock.monotonic())),
    forgetHolder: access.writing(forgetHolder),
    commit: access.writing(commitTask),
  };
}
