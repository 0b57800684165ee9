import type { Store } from '../../ports/store.ts';

/** Tells readers that a conversation has changed. A notification may get lost, so every reader is also woken every `pollMs`. */
export class Changes {
  readonly pollMs: number;
  readonly #watches = new Map<string, Set<Watch>>();
  readonly #any = new Set<(moved: readonly string[] | null) => void>();
  readonly #reads = new Map<string, { readonly after: number; readonly read: Promise<unknown> }>();
  readonly #stop: () => void;
  /** One timer for all watches: a turn waits many times. Null: nobody watches. */
  #poll: NodeJS.Timeout | null = null;
  #waiting = 0;

  constructor(store: Store, pollMs: number) {
    this.pollMs = pollMs;
    this.#stop = store.listen((moved, own) => this.#notify(moved, own));
  }

  /** `ignoreOwn`: for the holder of the lease, who knows what it has written itself. */
  watch(conversation: string, ignoreOwn = false): Watch {
    const watches = this.#watches.get(conversation) ?? new Set();
    this.#watches.set(conversation, watches);
    const watch = new Watch(
      ignoreOwn,
      (by) => this.#wait(by),
      () => {
        watches.delete(watch);
        if (watches.size === 0) this.#watches.delete(conversation);
        if (this.#watches.size === 0) this.#stopPolling();
      },
    );
    watches.add(watch);
    this.#poll ??= setInterval(() => this.#notifyAll(), this.pollMs);
    this.#wait(0);
    return watch;
  }

  /** Calls back on every change, with the conversations that changed; null: any may have. */
  onAny(listener: (moved: readonly string[] | null) => void): () => void {
    this.#any.add(listener);
    return () => this.#any.delete(listener);
  }

  /**
   * One read for all readers that ask for the same at the same moment: readers of a conversation are woken together. A read from
   * before a notification is not shared with those it wakes, and nothing is kept longer than this turn of the event loop.
   */
  together<T>(conversation: string, after: number, read: () => Promise<T>): Promise<T> {
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
    this.#stop();
    this.#stopPolling();
    // Whoever is woken now must read, and be told that it is closed: nothing wakes a reader again.
    this.#reads.clear();
    this.#notifyAll();
  }

  /** The process may end while nobody waits. */
  #wait(by: number): void {
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

  #notify(moved: readonly string[] | null, own?: ReadonlySet<string>): void {
    if (moved === null) this.#reads.clear();
    else for (const id of moved) this.#reads.delete(id);
    if (moved === null) this.#notifyAll();
    else for (const id of moved) for (const watch of this.#watches.get(id) ?? []) watch.notify(own?.has(id));
    for (const listener of this.#any) listener(moved);
  }
}

/** One reader of one conversation. A notification between two waits is not lost: the next wait ends at once. */
export class Watch {
  readonly #ignoreOwn: boolean;
  readonly #onWait: (by: 1 | -1) => void;
  readonly #onClose: () => void;
  #notified = false;
  #wake: (() => void) | null = null;

  constructor(ignoreOwn: boolean, onWait: (by: 1 | -1) => void, onClose: () => void) {
    this.#ignoreOwn = ignoreOwn;
    this.#onWait = onWait;
    this.#onClose = onClose;
  }

  notify(own = false): void {
    if (own && this.#ignoreOwn) return;
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
          // The writer continues first: a prompt is sent before its followers read how it got there.
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
