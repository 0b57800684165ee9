import { Away } from './faults.ts';

/** What can be stopped: by its caller's signal, by us, or because it takes too long. */
export class Stop {
  readonly #controller = new AbortController();
  readonly #signal: AbortSignal | undefined;
  readonly #follow = () => this.#controller.abort(this.#signal?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
    if (signal?.aborted) this.#follow();
    else signal?.addEventListener('abort', this.#follow);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason?: unknown): void {
    this.#controller.abort(reason);
  }

  /** From now on, unless it is said again or released before. */
  within(ms: number, why: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.abort(new Away(why, { undone: false })), ms);
  }

  /** Without a limit again. */
  atLeisure(): void {
    clearTimeout(this.#timer);
  }

  /** Resolves then, or when stopped. */
  after(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timer = setTimeout(resolve, ms);
      if (this.signal.aborted) resolve();
      this.signal.addEventListener('abort', () => resolve());
    });
  }

  /** It is over: nothing of it is left behind. */
  release(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#follow);
  }
}
