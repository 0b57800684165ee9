import type { TaskStore } from '../../../ports/store/tasks.ts';
import type { Access } from '../server/access.ts';
import { alone, findTask, lastTaskSeq, taskEvents } from './task-board.ts';
import { cancelTask, commitTask, retryTask, taskUsage } from './task-changes.ts';
import { claimableTask, claimTask, forgetHolder, releaseTask, renewTasks, taskHolders } from './task-claim.ts';
import { addTasks, listTasks } from './task-plans.ts';

/** Tasks, in the same database as conversations. */
export function taskStore(access: Access): TaskStore {
  return {
    add: access.writing(alone(addTasks)),
    find: access.reading(findTask),
    list: access.reading(listTasks),
    events: access.reading(taskEvents),
    lastSeq: access.reading(lastTaskSeq),
    usage: access.reading(taskUsage),
    requestCancel: access.writing(alone(cancelTask)),
    retry: access.writing(alone(retryTask)),
    async claim(request) {
      // A transaction starts only if there is something to claim.
      const found = await access.read(async (sql) => claimableTask(sql, request, (await access.times(sql)).monotonic));
      return found === null ? null : access.write((tx) => alone(claimTask)(tx, request));
    },
    renew: access.writing(renewTasks),
    release: access.writing(alone(releaseTask)),
    holders: () => access.read(async (sql) => taskHolders(sql, (await access.times(sql)).monotonic)),
    forgetHolder: access.writing(alone(forgetHolder)),
    commit: access.writing(alone(commitTask)),
  };
}
