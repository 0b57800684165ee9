import { ThroughlineError } from '../core/errors.ts';
import { isStorageFault } from './faults.ts';
import type { Lease } from './lease.ts';
import type { EngineParts } from './parts.ts';

/** Keeps this worker's leases alive, and frees those of workers that are provably dead (R2). */
export class LeaseKeeper {
  readonly #parts: EngineParts;
  readonly #worker: string;
  readonly #held: () => Lease[];
  readonly #wake: () => void;
  #timers: NodeJS.Timeout[] = [];
  #reapedAt = Number.NEGATIVE_INFINITY;

  /** `held`: the leases of now. `wake`: something may have become claimable. */
  constructor(parts: EngineParts, worker: string, held: () => Lease[], wake: () => void) {
    this.#parts = parts;
    this.#worker = worker;
    this.#held = held;
    this.#wake = wake;
  }

  /** Idempotent: a worker that never claims anything needs no heart. */
  start(): void {
    if (this.#timers.length > 0) return;
    const { leaseMs } = this.#parts.settings;
    const every = (ms: number, where: string, work: () => Promise<void>) =>
      setInterval(() => void this.#safely(where, work), ms).unref();
    this.#timers = [
      every(leaseMs / 3, 'heartbeat', () => this.#renew()),
      // More often than the heart beats: it costs a look, and who waits for a dead worker waits for nothing.
      every(Math.min(leaseMs / 3, DEATH_WATCH_MS), 'looking for dead workers', async () => {
        if (await this.reap()) this.#wake();
      }),
    ];
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  /** Frees the leases of dead workers; looks at most ten times a second. True: there were some. */
  async reap(): Promise<boolean> {
    const { store, processes, clock } = this.#parts;
    if (clock.monotonic() - this.#reapedAt < REAP_EVERY_MS) return false;
    this.#reapedAt = clock.monotonic();
    let freed = false;
    for (const worker of await store.workers()) {
      if (worker.id === this.#worker || processes.status(worker.process) !== 'dead') continue;
      await store.forgetWorker(worker.id);
      freed = true;
    }
    return freed;
  }

  async #renew(): Promise<void> {
    const { store, settings } = this.#parts;
    const leases = this.#held();
    const fences = leases.map((lease) => lease.fence);
    const lost = fences.length > 0 ? await store.renew(fences, settings.leaseMs) : [];
    for (const { conversation, epoch } of lost) {
      const lease = leases.find(({ fence }) => fence.conversation === conversation && fence.epoch === epoch);
      lease?.lose(new ThroughlineError('lease_lost', 'Another worker took over.'));
    }
    this.#wake();
  }

  /** A fault of the storage is met again, and reported, by whoever writes; the next beat tries once more. */
  async #safely(where: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isStorageFault(error)) this.#parts.onBug(error, where);
    }
  }
}

const REAP_EVERY_MS = 100;
const DEATH_WATCH_MS = 1_000;
