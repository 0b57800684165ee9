import type { Store } from '../../ports/store.ts';

/** Tells readers that a conversation has changed. A notification may get lost, so every reader is also woken every `pollMs`. */
export class Changes {
  readonly pollMs: number;
  readonly #store: Store;
  readonly #watches = new Map<string, Set<Watch>>();
  readonly #any = new Set<(moved: readonly string[] | null) => void>();
  readonly #reads = new Map<string, { readonly after: number; readonly read: Promise<unknown> }>();
  /** Stops listening to the store. Null: it is not listened to, because nobody watches. */
  #stop: (() => void) | null = null;
  #isClosed = false;
  /** One timer for all watches, because a reader waits many times in a turn. Null: nobody watches. */
  #poll: NodeJS.Timeout | null = null;
  #waiting = 0;

  constructor(store: Store, pollMs: number) {
    this.pollMs = pollMs;
    this.#store = store;
  }

  watch(conversation: string): Watch {
    this.#listen();
    const watches = this.#watches.get(conversation) ?? new Set();
    this.#watches.set(conversation, watches);
    const watch = new Watch(
      (by) => this.#countWaiting(by),
      () => {
        watches.delete(watch);
        if (watches.size === 0) this.#watches.delete(conversation);
        if (this.#watches.size === 0) this.#stopPolling();
        this.#stopIfUnused();
      },
    );
    watches.add(watch);
    this.#poll ??= setInterval(() => this.#notifyAll(), this.pollMs);
    this.#countWaiting(0);
    return watch;
  }

  /** Calls back on every change, with the conversations that changed; null: any may have. */
  onAny(listener: (moved: readonly string[] | null) => void): () => void {
    this.#listen();
    this.#any.add(listener);
    return () => {
      this.#any.delete(listener);
      this.#stopIfUnused();
    };
  }

  /**
   * One read for all readers that ask for the same at the same moment: readers of a conversation are woken together. A reader that a
   * notification wakes never gets a read from before it. Nothing is kept longer than this turn of the event loop.
   */
  sharedRead<T>(conversation: string, after: number, read: () => Promise<T>): Promise<T> {
    const known = this.#reads.get(conversation);
    if (known?.after === after) return known.read as Promise<T>;
    const entry = { after, read: read() };
    this.#reads.set(conversation, entry);
    setImmediate(() => {
      if (this.#reads.get(conversation) === entry) this.#reads.delete(conversation);
    });
    return entry.read;
  }

  close(): void {
    this.#isClosed = true;
    this.#stop?.();
    this.#stopPolling();
    // Wakes the readers: they read, and find the store closed. Nothing would wake them later.
    this.#reads.clear();
    this.#notifyAll();
  }

  #listen(): void {
    if (!this.#isClosed) this.#stop ??= this.#store.listen((moved) => this.#notify(moved));
  }

  #stopIfUnused(): void {
    if (this.#watches.size > 0 || this.#any.size > 0) return;
    this.#stop?.();
    this.#stop = null;
  }

  /** The timer keeps the process alive only while somebody waits. */
  #countWaiting(by: number): void {
    this.#waiting += by;
    if (this.#waiting > 0) this.#poll?.ref();
    else this.#poll?.unref();
  }

  #stopPolling(): void {
    if (this.#poll !== null) clearInterval(this.#poll);
    this.#poll = null;
  }

  #notifyAll(): void {
    for (const watches of this.#watches.values()) for (const watch of watches) watch.notify();
  }

  #notify(moved: readonly string[] | null): void {
    if (moved === null) {
      this.#reads.clear();
      this.#notifyAll();
    }
    for (const id of moved ?? []) {
      this.#reads.delete(id);
      for (const watch of this.#watches.get(id) ?? []) watch.notify();
    }
    for (const listener of this.#any) listener(moved);
  }
}

/** One reader of one conversation. A notification between two waits is not lost: the next wait ends at once. */
export class Watch {
  readonly #onWait: (by: 1 | -1) => void;
  readonly #onClose: () => void;
  #notified = false;
  #wake: (() => void) | null = null;

  constructor(onWait: (by: 1 | -1) => void, onClose: () => void) {
    this.#onWait = onWait;
    this.#onClose = onClose;
  }

  notify(): void {
    this.#notified = true;
    this.#wake?.();
  }

  /** Resolves at the next notification, at once when there was one since the last wait, or when the signal aborts. */
  async next(signal?: AbortSignal): Promise<void> {
    if (!this.#notified && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          signal?.removeEventListener('abort', done);
          this.#wake = null;
          this.#onWait(-1);
          // The writer continues first: a prompt is sent before its followers read the events before it.
          setImmediate(resolve);
        };
        signal?.addEventListener('abort', done);
        this.#wake = done;
        this.#onWait(1);
      });
    }
    this.#notified = false;
  }

  close(): void {
    this.#onClose();
  }
}
