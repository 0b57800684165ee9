import type { Check } from './parts.ts';

/** Leases of processes that are provably dead. They are free for whoever needs them; until then they look taken. */
export const checkLeases: Check = async ({ store, processes, reap }) => {
  const dead = (await store.workers()).filter(({ process }) => processes.status(process) === 'dead');
  return dead.map(({ id, process }) => ({
    check: 'leases',
    subject: `worker ${id}`,
    problem: `The process ${process.pid} has ended and still holds conversations.`,
    remedy: 'End what it left running, and free its conversations.',
    repair: async () => {
      await reap();
    },
  }));
};
