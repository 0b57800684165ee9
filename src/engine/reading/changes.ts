import type { Store } from '../../ports/store.ts';

/** Waits for a conversation to move. A bell is a hint only: everybody who waits is also woken every `pollMs`. */
export class Changes {
  readonly #watches = new Map<string, Set<Watch>>();
  readonly #any = new Set<(moved: readonly string[] | null) => void>();
  readonly #reads = new Map<string, { readonly after: number; readonly read: Promise<unknown> }>();
  readonly #pollMs: number;
  readonly #stop: () => void;
  /** One for all: a turn waits many times. Null: nobody watches. */
  #poll: NodeJS.Timeout | null = null;
  #waiting = 0;

  constructor(store: Store, pollMs: number) {
    this.#pollMs = pollMs;
    this.#stop = store.listen((moved, own) => this.#ring(moved, own));
  }

  /** `deafToOwn`: for the holder of its lease, who knows what it has written itself. */
  watch(conversation: string, deafToOwn = false): Watch {
    const watches = this.#watches.get(conversation) ?? new Set();
    this.#watches.set(conversation, watches);
    const watch = new Watch(
      deafToOwn,
      (by) => this.#wait(by),
      () => {
        watches.delete(watch);
        if (watches.size === 0) this.#watches.delete(conversation);
        if (this.#watches.size === 0) this.#stopPolling();
      },
    );
    watches.add(watch);
    this.#poll ??= setInterval(() => this.#ringAll(), this.#pollMs);
    this.#wait(0);
    return watch;
  }

  /** Calls back on every bell, with the conversations that moved; null: any may have. */
  onAny(listener: (moved: readonly string[] | null) => void): () => void {
    this.#any.add(listener);
    return () => this.#any.delete(listener);
  }

  /**
   * One read for all who ask for the same at the same moment: readers of a conversation are woken together. What was read before
   * the bell is not given to those it wakes, and nothing is kept for longer than this turn of the event loop.
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
    this.#ringAll();
  }

  /** Only somebody who waits keeps the process from ending. */
  #wait(by: number): void {
    this.#waiting += by;
    if (this.#waiting > 0) this.#poll?.ref();
    else this.#poll?.unref();
  }

  #stopPolling(): void {
    if (this.#poll !== null) clearInterval(this.#poll);
    this.#poll = null;
  }

  #ringAll(): void {
    for (const watches of this.#watches.values()) for (const watch of watches) watch.ring();
  }

  #ring(moved: readonly string[] | null, own?: ReadonlySet<string>): void {
    if (moved === null) this.#reads.clear();
    else for (const id of moved) this.#reads.delete(id);
    if (moved === null) this.#ringAll();
    else for (const id of moved) for (const watch of this.#watches.get(id) ?? []) watch.ring(own?.has(id));
    for (const listener of this.#any) listener(moved);
  }
}

/** One reader's view of the bell. A ring between two waits is not lost: the next wait ends at once. */
export class Watch {
  readonly #deafToOwn: boolean;
  readonly #onWait: (by: 1 | -1) => void;
  readonly #onClose: () => void;
  #rung = false;
  #wake: (() => void) | null = null;

  constructor(deafToOwn: boolean, onWait: (by: 1 | -1) => void, onClose: () => void) {
    this.#deafToOwn = deafToOwn;
    this.#onWait = onWait;
    this.#onClose = onClose;
  }

  ring(own = false): void {
    if (own && this.#deafToOwn) return;
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves at the next ring, at once when there was one since the last wait, or when the signal aborts. */
  async next(signal?: AbortSignal): Promise<void> {
    if (!this.#rung && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          signal?.removeEventListener('abort', done);
          this.#wake = null;
          this.#onWait(-1);
          // Whoever wrote goes on first: a prompt leaves before its followers read that it was sent.
          process.nextTick(resolve);
        };
        signal?.addEventListener('abort', done);
        this.#wake = done;
        this.#onWait(1);
      });
    }
    this.#rung = false;
  }

  close(): void {
    this.#onClose();
  }
}
