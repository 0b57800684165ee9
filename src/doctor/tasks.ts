import type { Finding } from '../ports/doctor.ts';
import type { Check } from './parts.ts';

/** Tasks whose runner is gone, and tasks that wait for what will not be done. */
export const checkTasks: Check = async ({ store, processes }, census) => {
  const dead = (await store.tasks.holders()).filter(({ process }) => processes.status(process) === 'dead');
  const held = dead.map(({ id, process }): Finding => {
    return {
      check: 'tasks',
      subject: `runner ${id}`,
      problem: `The process ${process.pid} has ended and still holds tasks.`,
      remedy: 'Queue its tasks again; "throughline task run", or a server, goes on with them.',
      repair: () => store.tasks.forgetHolder(id),
    };
  });
  const blocked = census.tasks
    .filter(({ state, blockedBy }) => state === 'waiting' && blockedBy.length > 0)
    .map(({ id, blockedBy }): Finding => {
      return {
        check: 'tasks',
        subject: `task ${id}`,
        problem: `It waits for ${blockedBy.join(', ')}, which has failed or was cancelled: have that tried again, or cancel this.`,
        remedy: null,
        repair: async () => {},
      };
    });
  return [...held, ...blocked];
};
