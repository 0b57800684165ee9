import { setTimeout as sleep, setImmediate as tick } from 'node:timers/promises';
import type { ProcessIdentity } from '../../../src/core/process.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Processes } from '../../../src/ports/processes.ts';
import type { Sandboxes } from '../../../src/ports/sandbox.ts';
import type { Gate } from './gate.ts';

/** A simulated machine: its time, and its processes, which are engines and agents. */
export class Machine {
  readonly clock: Clock = { now: () => this.time, monotonic: () => this.time };
  time: number;
  /** Counts everything that happens, so that `stillness` can see when nothing happens any more. */
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

  /** The processes of agents as one engine sees them. */
  sandboxedFor(gate: Gate): Pick<Sandboxes, 'status' | 'end' | 'orphans'> {
    return {
      status: async (process) => (this.isAlive({ pid: Number(process.id) }) ? 'alive' : 'dead'),
      end: (process) =>
        gate.through(async () => {
          this.kill({ pid: Number(process.id) });
          return 'ended' as const;
        }),
      // There are none: every process of this machine is recorded before it is killed.
      orphans: async () => [],
    };
  }

  async ticks(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) await tick();
  }

  /** Waits until nothing happens any more. Moves the time forward, far enough that dead processes are noticed. */
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
