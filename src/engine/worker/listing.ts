import { isStorageFault } from '../../core/errors.ts';
import type { WorkerInfo } from '../../ports/store/leases.ts';
import type { EngineParts } from '../parts.ts';

/** How often a process lists itself as one that takes up turns. */
const ENLIST_MS = 60_000;

/** The entries of this process in the store. Other processes read there what it takes up, and where the conversations of its home run. */
export class Listing {
  readonly #parts: EngineParts;
  readonly #worker: WorkerInfo;
  #enlisting: Promise<void> | null = null;
  #enlistedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: EngineParts, worker: WorkerInfo) {
    this.#parts = parts;
    this.#worker = worker;
  }

  /** Stores the path of this data home, so that other data homes with the same store can name it. */
  async nameHome(): Promise<void> {
    const { store, sandboxes, onBug } = this.#parts;
    await store.namePlace(sandboxes.place, sandboxes.home).catch((error: unknown) => {
      if (!isStorageFault(error)) onBug(error, 'naming the place');
    });
  }

  /** Lists this process as one that takes up turns, if that was not done lately. Called every second. */
  keep(): void {
    const now = this.#parts.clock.monotonic();
    if (now - this.#enlistedAt < ENLIST_MS) return;
    this.#enlistedAt = now;
    this.#enlisting = this.#enlist();
  }

  /** Removes this process from the list. If the disk is full it stays listed, and others find that it is dead. */
  async end(): Promise<void> {
    if (this.#enlisting === null) return;
    await this.#enlisting;
    await this.#parts.store.forgetWorker(this.#worker.id).catch(() => {});
  }

  /** If the storage refuses, the next call of `keep` tries again. */
  async #enlist(): Promise<void> {
    const { store, sandboxes, agents, onBug } = this.#parts;
    const takes = { place: sandboxes.place, agents: [...agents.keys()] };
    await store.enlist({ ...this.#worker, ...takes }).catch((error: unknown) => {
      this.#enlistedAt = Number.NEGATIVE_INFINITY;
      if (!isStorageFault(error)) onBug(error, 'listing this process');
    });
  }
}
