import type { Processes } from '../../ports/processes.ts';
import type { Store } from '../../ports/store.ts';

/**
 * Ends what provably dead workers left running, and then frees their leases (R2): an agent that was kept warm for them would
 * else wait for a prompt that may never come. In this order, so that whoever dies between the two leaves it to the next. True:
 * there were some.
 */
export async function reapDeadWorkers({ store, processes }: { store: Store; processes: Processes }): Promise<boolean> {
  const dead = (await store.workers()).filter((worker) => processes.status(worker.process) === 'dead');
  for (const { id } of dead) {
    const left = await store.processesOf(id);
    await Promise.all(left.map((process) => processes.end(process)));
    await store.forgetWorker(id);
  }
  return dead.length > 0;
}
