import { setTimeout as delay } from 'node:timers/promises';
import { type ErrorCode, ThroughlineError } from '../core/errors.ts';
import type { Fence, Store, Write } from '../ports/store.ts';

/** Faults of the storage that may pass: a full disk gets room, a lock is let go. */
const PASSING: readonly ErrorCode[] = ['storage_full', 'storage_busy', 'storage_readonly'];

/**
 * The right to write a conversation, and its only pen. Writes are committed in the order in which they were given, one
 * commit at a time: what arrives during a commit shares the next one. A commit is repeated with the same counter until it
 * is known to have happened, which changes nothing when it had (R5).
 */
export class Lease {
  readonly fence: Fence;
  readonly #store: Store;
  readonly #storageMs: number;
  readonly #lost = new AbortController();
  #counter = 1;
  #waiting: { write: Write; done: Settler }[] = [];
  #committing: Promise<void> | null = null;
  #lastSeq = 0;

  constructor(store: Store, fence: Fence, storageMs: number) {
    this.#store = store;
    this.fence = fence;
    this.#storageMs = storageMs;
  }

  /** Aborts when another worker owns the conversation, or when the storage refuses for good: then nothing may go on. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** The number of the newest event that this lease has written; 0: none yet. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Resolves when all of these, and all before them, are durable. Rejects with `lease_lost` or the storage's error. */
  write(...writes: Write[]): Promise<void> {
    const settled = new Promise<void>((resolve, reject) => {
      writes.forEach((write, i) => {
        this.#waiting.push({ write, done: i === writes.length - 1 ? { resolve, reject } : NOBODY });
      });
      if (writes.length === 0) resolve();
    });
    this.#committing ??= this.#drain();
    return settled;
  }

  /** Resolves when there is room for more: a fast agent must not outrun the disk without bound. */
  async room(): Promise<void> {
    while (this.#waiting.length > MAX_WAITING && this.#committing) await this.#committing.catch(() => {});
  }

  /** The lease was found to be lost by a heartbeat. */
  lose(reason: ThroughlineError): void {
    if (!this.#lost.signal.aborted) this.#lost.abort(reason);
  }

  async #drain(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#waiting.splice(0, MAX_BATCH);
        const counter = this.#counter;
        this.#counter += batch.length;
        try {
          const writes = batch.map((entry) => entry.write);
          this.#lastSeq = (await this.#commit(counter, writes)).seq;
        } catch (error) {
          this.#fail(error, batch);
          continue;
        }
        for (const entry of batch) entry.done.resolve();
      }
    } finally {
      this.#committing = null;
    }
  }

  async #commit(counter: number, writes: readonly Write[]): Promise<{ seq: number }> {
    const started = performance.now();
    for (let wait = 20; ; wait = Math.min(wait * 2, 1_000)) {
      this.#lost.signal.throwIfAborted();
      try {
        return await this.#store.commit(this.fence, counter, writes);
      } catch (error) {
        const passing = error instanceof ThroughlineError && PASSING.includes(error.code);
        if (!passing || performance.now() - started > this.#storageMs) throw error;
        await delay(wait);
      }
    }
  }

  /** One commit that failed for good leaves a hole: nothing after it may be written under this lease, save a `conflict`. */
  #fail(error: unknown, batch: { done: Settler }[]): void {
    const conflict = error instanceof ThroughlineError && error.code === 'conflict';
    if (!conflict) this.#lost.abort(error);
    for (const entry of batch) entry.done.reject(error);
  }
}

interface Settler {
  resolve(): void;
  reject(error: unknown): void;
}

const NOBODY: Settler = { resolve: () => {}, reject: () => {} };
const MAX_BATCH = 256;
const MAX_WAITING = 2_000;
