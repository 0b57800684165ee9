import { type FSWatcher, watch } from 'node:fs';

/** Some file systems never report changes. */
const NO_REPORT_MS = 250;

/**
 * Reports when a file has changed. Only a hint: where the system cannot report it, or the file does not exist yet, a timeout does.
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
   * Resolves when the file has changed since the last call, when the watch is closed, and in any case after a while: after
   * `pause` where the file cannot be watched.
   */
  async next(pause: number): Promise<void> {
    if (this.#watcher === null) this.#watch();
    if (!this.#changed && !this.#closed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.#watcher === null ? pause : NO_REPORT_MS);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wake = null;
    this.#changed = false;
  }

  /** Ends a wait. */
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
        // Deleted or replaced: the path is another file now.
        if (what === 'rename') this.#unwatch(watcher);
        this.#changed = true;
        this.#wake?.();
      });
      watcher.on('error', () => this.#unwatch(watcher));
      this.#watcher = watcher;
    } catch {
      // the file does not exist yet, or too many are watched
    }
  }

  #unwatch(watcher: FSWatcher): void {
    watcher.close();
    if (this.#watcher === watcher) this.#watcher = null;
  }
}
