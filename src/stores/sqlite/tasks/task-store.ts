import type { Clock } from '../../../ports/clock.ts';
import type { TaskStore } from '../../../ports/store/tasks.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { findTaskRow, lastTaskSeq, taskEvents, taskOf } from './task-board.ts';
import { cancelTask, commitTask, retryTask, taskUsage } from './task-changes.ts';
import { claimableTask, claimTask, forgetHolder, releaseTask, renewTasks, taskHolders } from './task-claim.ts';
import { addTasks, listTasks } from './task-plans.ts';

interface Doors {
  read<T>(look: (db: Database) => T): Promise<T>;
  write<T>(verb: (tx: Tx) => T): Promise<T>;
  readonly clock: Clock;
}

/** Tasks in the same file as conversations. */
export function taskStore({ read, write, clock }: Doors): TaskStore {
  return {
    add: (owner, plan) => write((tx) => addTasks(tx, owner, plan)),
    find: (owner, idOrName) =>
      read((db) => {
        const row = findTaskRow(db, owner, idOrName);
        return row === undefined ? null : taskOf(row);
      }),
    list: (owner, filter, page) => read((db) => listTasks(db, owner, filter, page)),
    events: (owner, range) => read((db) => taskEvents(db, owner, range)),
    lastSeq: (owner) => read((db) => lastTaskSeq(db, owner)),
    usage: (owner, page) => read((db) => taskUsage(db, owner, page)),
    requestCancel: (owner, task, by) => write((tx) => cancelTask(tx, owner, task, by)),
    retry: (owner, task, change) => write((tx) => retryTask(tx, owner, task, change)),
    async claim(request) {
      // A transaction starts only if there is something to claim.
      if ((await read((db) => claimableTask(db, request, clock.monotonic()))) === null) return null;
      return write((tx) => claimTask(tx, request));
    },
    renew: (fences, leaseMs) => write((tx) => renewTasks(tx, fences, leaseMs)),
    release: (fence) => write((tx) => releaseTask(tx, fence)),
    holders: () => read(taskHolders),
    forgetHolder: (worker) => write((tx) => forgetHolder(tx, worker)),
    commit: (fence, change) => write((tx) => commitTask(tx, fence, change)),
  };
}
