import { isStorageFault } from '../../core/errors.ts';
import type { WorkerInfo } from '../../ports/store/leases.ts';
import type { EngineParts } from '../parts.ts';

/** How often a process says that it takes up turns. */
const ENLIST_MS = 60_000;

/** The entries of this process in the store. Others read there what it takes up, and where the conversations of its home run. */
export class Listing {
  readonly #parts: EngineParts;
  readonly #worker: WorkerInfo;
  #enlisting: Promise<void> | null = null;
  #enlistedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: EngineParts, worker: WorkerInfo) {
    this.#parts = parts;
    this.#worker = worker;
  }

  /** So that another data home with the same store can say where a conversation runs. */
  async nameHome(): Promise<void> {
    const { store, sandboxes, onBug } = this.#parts;
    await store.namePlace(sandboxes.place, sandboxes.home).catch((error: unknown) => {
      if (!isStorageFault(error)) onBug(error, 'naming the place');
    });
  }

  /** Called every second, which is often enough: others then know that what they submit is run. */
  keep(): void {
    const now = this.#parts.clock.monotonic();
    if (now - this.#enlistedAt < ENLIST_MS) return;
    this.#enlistedAt = now;
    this.#enlisting = this.#enlist();
  }

  /** On a full disk it stays listed, and whoever looks finds it dead. */
  async end(): Promise<void> {
    if (this.#enlisting === null) return;
    await this.#enlisting;
    await this.#parts.store.forgetWorker(this.#worker.id).catch(() => {});
  }

  /** Tried again by the next call when the storage refuses. */
  async #enlist(): Promise<void> {
    const { store, sandboxes, agents, onBug } = this.#parts;
    const takes = { place: sandboxes.place, agents: [...agents.keys()] };
    await store.enlist({ ...this.#worker, ...takes }).catch((error: unknown) => {
      this.#enlistedAt = Number.NEGATIVE_INFINITY;
      if (!isStorageFault(error)) onBug(error, 'listing this process');
    });
  }
}
