import { ThroughlineError } from '../../core/errors.ts';
import { isStorageFault } from '../faults.ts';
import type { EngineParts } from '../parts.ts';
import { reapDeadWorkers } from './dead-workers.ts';
import type { Lease } from './lease.ts';

/** Keeps this worker's leases alive, and clears up after workers that are provably dead (R2). */
export class LeaseKeeper {
  readonly #parts: EngineParts;
  readonly #held: () => Lease[];
  readonly #wake: () => void;
  #timers: NodeJS.Timeout[] = [];
  #reapedAt = Number.NEGATIVE_INFINITY;
  #reaping: Promise<boolean> | null = null;

  /** `held`: the leases of now. `wake`: something may have become claimable. */
  constructor(parts: EngineParts, held: () => Lease[], wake: () => void) {
    this.#parts = parts;
    this.#held = held;
    this.#wake = wake;
  }

  /** Idempotent: a worker that never claims anything needs no heart. */
  start(): void {
    if (this.#timers.length > 0) return;
    const { leaseMs } = this.#parts.settings;
    this.#timers = [
      setInterval(() => void this.#safely('heartbeat', () => this.#renew()), leaseMs / 3).unref(),
      // More often than the heart beats: it costs a look, and who waits for a dead worker waits for nothing.
      setInterval(() => void this.look(), Math.min(leaseMs / 3, DEATH_WATCH_MS)).unref(),
    ];
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }

  /** Looks once, for nobody in particular: what dead workers left running must not wait until it is used again. */
  look(): Promise<void> {
    return this.#safely('looking for dead workers', async () => {
      if (await this.reap()) this.#wake();
    });
  }

  /** Frees the leases of dead workers; looks at most ten times a second. True: there were some. */
  async reap(): Promise<boolean> {
    if (this.#reaping !== null) return this.#reaping;
    const now = this.#parts.clock.monotonic();
    if (now - this.#reapedAt < REAP_EVERY_MS) return false;
    this.#reapedAt = now;
    this.#reaping = reapDeadWorkers(this.#parts).finally(() => {
      this.#reaping = null;
    });
    return this.#reaping;
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
