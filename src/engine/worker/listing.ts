import { isStorageFault } from '../../core/errors.ts';
import type { ProcessIdentity } from '../../core/process.ts';
import type { EngineParts } from '../parts.ts';

/** How often a process says that it takes up turns. */
const ENLIST_MS = 60_000;

/** The entries of this process in the store. Others read there what it takes up, and where the conversations of its home run. */
export class Listing {
  readonly #parts: EngineParts;
  readonly #worker: { readonly id: string; readonly process: ProcessIdentity };
  #enlisting: Promise<void> | null = null;
  #enlistedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: EngineParts, id: string) {
    this.#parts = parts;
    this.#worker = { id, process: parts.processes.self() };
  }

  /** Who claims, where, and which agents it runs. */
  self() {
    const { sandboxes, agents } = this.#parts;
    return { worker: this.#worker, place: sandboxes.place, agents: [...agents.keys()] };
  }

  /** So that another data home with the same store can say where a conversation runs. */
  async nameHome(): Promise<void> {
    const { store, sandboxes, onBug } = this.#parts;
    await store.namePlace(sandboxes.place, sandboxes.home).catch((error: unknown) => {
      if (!isStorageFault(error)) onBug(error, 'naming the place');
    });
  }

  /** Called at every claim, which is often enough: others then know that what they submit is run. */
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

  /** Tried again with the next claim when the storage refuses. */
  async #enlist(): Promise<void> {
    const { worker, ...takes } = this.self();
    await this.#parts.store.enlist({ ...worker, ...takes }).catch((error: unknown) => {
      this.#enlistedAt = Number.NEGATIVE_INFINITY;
      if (!isStorageFault(error)) this.#parts.onBug(error, 'listing this process');
    });
  }
}
