import type { Store } from '../ports/store.ts';

/** Waits for tasks to move. A bell is a hint only: every wait also ends by itself after `pollMs`. */
export class TaskBell {
  readonly #pollMs: number;
  readonly #stop: () => void;
  #moved = new Set<string>();
  #any = false;
  #wake: (() => void) | null = null;

  constructor(store: Store, pollMs: number) {
    this.#pollMs = pollMs;
    this.#stop = store.listen((moved) => {
      if (moved === null) this.#any = true;
      else for (const id of moved) this.#moved.add(id);
      this.#wake?.();
    });
  }

  /** What moved since the last wait, at once if there is any; null: anything may have. Conversations are among the ids. */
  async next(signal?: AbortSignal): Promise<ReadonlySet<string> | null> {
    let timedOut = false;
    if (this.#moved.size === 0 && !this.#any && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          timedOut = true;
          this.#wake?.();
        }, this.#pollMs);
        this.#wake = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', ring);
          this.#wake = null;
          resolve();
        };
        const ring = () => this.#wake?.();
        signal?.addEventListener('abort', ring);
      });
    }
    const moved = this.#any || timedOut ? null : this.#moved;
    this.#moved = new Set();
    this.#any = false;
    return moved;
  }

  close(): void {
    this.#stop();
    this.#wake?.();
  }
}
