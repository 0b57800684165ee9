import { type FSWatcher, watch } from 'node:fs';

/** A watch that says nothing may be one of a file system that never does. */
const NEVER_TOLD_MS = 250;

/**
 * Says when a file has changed. Only a hint: where the system cannot tell, or the file is not there yet, time alone does.
 */
export class FileWatch {
  readonly #path: string;
  #watcher: FSWatcher | null = null;
  #changed = false;
  #closed = false;
  #wake: (() => void) | null = null;

  constructor(path: string) {
    this.#path = path;
    this.#watch();
  }

  /**
   * Resolves when it has changed since the last call, or is watched no more; after a while in any case: soon, where the system does
   * not tell.
   */
  async next(pause: number): Promise<void> {
    if (this.#watcher === null) this.#watch();
    if (!this.#changed && !this.#closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.#watcher === null ? pause : NEVER_TOLD_MS);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wake = null;
    this.#changed = false;
  }

  /** Whoever waits need not wait any longer. */
  release(): void {
    this.#wake?.();
  }

  close(): void {
    this.#closed = true;
    this.#watcher?.close();
    this.#watcher = null;
    this.#wake?.();
  }

  #watch(): void {
    if (this.#closed) return;
    try {
      const watcher = watch(this.#path, { persistent: false }, (what) => {
        // Deleted or replaced: what lies there now is another file.
        if (what === 'rename') this.#unwatch(watcher);
        this.#changed = true;
        this.#wake?.();
      });
      watcher.on('error', () => this.#unwatch(watcher));
      this.#watcher = watcher;
    } catch {
      // not there yet, or too many are watched
    }
  }

  #unwatch(watcher: FSWatcher): void {
    watcher.close();
    if (this.#watcher === watcher) this.#watcher = null;
  }
}
