import { setTimeout as sleep, setImmediate as tick } from 'node:timers/promises';
import type { ProcessIdentity } from '../../../src/core/process.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Processes } from '../../../src/ports/processes.ts';
import type { Sandboxes } from '../../../src/ports/sandbox.ts';
import type { Gate } from './gate.ts';

/** A machine of its own: its time, and its processes, which are engines and agents. */
export class Machine {
  readonly clock: Clock = { now: () => this.time, monotonic: () => this.time };
  time: number;
  /** Counts everything that moves, so that stillness can be seen. */
  activity = 0;
  readonly #alive = new Map<number, { died: Promise<void>; die: () => void }>();
  #pids = 0;

  constructor(time: number) {
    this.time = time;
  }

  spawn(): ProcessIdentity {
    this.#pids += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#alive.set(this.#pids, { died: promise, die: resolve });
    return { pid: this.#pids, started: String(this.#pids), boot: 'boot', namespace: '' };
  }

  isAlive({ pid }: Pick<ProcessIdentity, 'pid'>): boolean {
    return this.#alive.has(pid);
  }

  /** Resolves when the process has ended. */
  death({ pid }: Pick<ProcessIdentity, 'pid'>): Promise<void> {
    return this.#alive.get(pid)?.died ?? Promise.resolve();
  }

  kill({ pid }: Pick<ProcessIdentity, 'pid'>): void {
    this.#alive.get(pid)?.die();
    this.#alive.delete(pid);
  }

  /** The processes as one engine sees them. */
  processesFor(self: ProcessIdentity): Processes {
    return {
      self: () => self,
      status: (process) => (this.isAlive(process) ? 'alive' : 'dead'),
    };
  }

  /** The same for processes of agents. */
  sandboxedFor(gate: Gate): Pick<Sandboxes, 'status' | 'end' | 'orphans'> {
    return {
      status: async (process) => (this.isAlive({ pid: Number(process.id) }) ? 'alive' : 'dead'),
      end: (process) =>
        gate.through(async () => {
          this.kill({ pid: Number(process.id) });
          return 'ended' as const;
        }),
      // Every process of this machine is recorded before it is killed.
      orphans: async () => [],
    };
  }

  async ticks(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) await tick();
  }

  /** Until nothing moves any more. Time goes on meanwhile, as far as it takes to see that a process is dead. */
  async stillness(): Promise<void> {
    this.time += 150;
    let still = 0;
    for (let rounds = 0; still < 3 && rounds < 500; rounds += 1) {
      const before = this.activity;
      await this.ticks(4);
      await sleep(2);
      still = this.activity === before ? still + 1 : 0;
    }
  }
}
