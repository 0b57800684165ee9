import { ThroughlineError } from '../../../src/core/errors.ts';
import type { Store } from '../../../src/ports/store.ts';

/**
 * Everything between one engine and its outside passes this gate. If the process is killed, nothing passes any more, and open calls get no
 * answer. If it is paused, calls wait until it continues.
 *
 *   open ◀──▶ paused
 *     └─▶ dead ──▶ buried (only to clean up after a sequence: everything is refused, nothing reaches the outside)
 */
export class Gate {
  readonly #onPass: () => void;
  readonly #onDeath: () => void;
  #state: 'open' | 'paused' | 'dead' | 'buried' = 'open';
  #passesLeft = Number.POSITIVE_INFINITY;
  #waiting: { resolve: () => void; reject: (error: unknown) => void }[] = [];

  constructor(onPass: () => void, onDeath: () => void) {
    this.#onPass = onPass;
    this.#onDeath = onDeath;
  }

  get open(): boolean {
    return this.#state === 'open';
  }

  get dead(): boolean {
    return this.#state === 'dead' || this.#state === 'buried';
  }

  async pass(): Promise<void> {
    this.#onPass();
    if (this.#state === 'open') {
      this.#passesLeft -= 1;
      if (this.#passesLeft < 0) this.die();
    }
    if (this.#state === 'buried') throw closed();
    if (this.#state !== 'open') await new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Passes the gate in both directions: a call may be made whose answer never comes. */
  async through<T>(call: () => Promise<T>): Promise<T> {
    await this.pass();
    const answer = await call();
    await this.pass();
    return answer;
  }

  dieAfter(passes: number): void {
    this.#passesLeft = passes;
  }

  die(): void {
    if (this.dead) return;
    this.#state = 'dead';
    this.#onDeath();
  }

  pause(): void {
    if (this.#state === 'open') this.#state = 'paused';
  }

  wake(): void {
    if (this.#state !== 'paused') return;
    this.#state = 'open';
    for (const one of this.#waiting.splice(0)) one.resolve();
  }

  bury(): void {
    this.#state = 'buried';
    for (const one of this.#waiting.splice(0)) one.reject(closed());
  }
}

/** The store as one engine sees it. */
export function storeBehind(gate: Gate, store: Store): Store {
  const gated = {
    listen: (listener: Parameters<Store['listen']>[0]) =>
      store.listen((moved) => {
        if (gate.open) listener(moved);
      }),
    close: async () => {},
  };
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === 'listen' || name === 'close') return gated[name];
      const verb = target[name] as (...args: unknown[]) => Promise<unknown>;
      return (...args: unknown[]) => gate.through(() => verb(...args));
    },
  });
}

function closed(): ThroughlineError {
  return new ThroughlineError('closed', 'This engine is closed.');
}
