import { addAbortListener } from 'node:events';
import type { HeavyKind } from '../../../wire/operations/operation.ts';
import { Refusal } from '../refusal.ts';

/** How many heavy calls one owner may have at once, how many more may wait, and for how long. */
const MOST_HEAVY = 4;
const MOST_WAITING = 32;
const WAIT_MS = 2_000;

interface Calls {
  running: number;
  /** Each is called when it gets the place of a call that has ended. */
  readonly waiting: (() => void)[];
}

/**
 * Calls that take long or much memory. Work of one owner must not crowd out that of others. A few at once are usual, such as those of a
 * person with many tabs: they wait for each other.
 */
export class HeavyCalls {
  readonly #owners = new Map<string, Calls>();
  readonly #kind: HeavyKind;
  readonly #waitMs: number;

  constructor(kind: HeavyKind, waitMs = WAIT_MS) {
    this.#kind = kind;
    this.#waitMs = waitMs;
  }

  /** Returns a function that frees the place. Throws `too_many`, also when the caller has gone while it waited. */
  async come(owner: string, gone: AbortSignal): Promise<() => void> {
    const calls = this.#owners.get(owner) ?? { running: 0, waiting: [] };
    this.#owners.set(owner, calls);
    if (calls.running < MOST_HEAVY) calls.running += 1;
    else if (!(await this.#waitForPlace(calls, gone))) throw tooMany(owner, calls.running, this.#kind);
    let hasPlace = true;
    return () => {
      if (hasPlace) this.#leave(owner, calls);
      hasPlace = false;
    };
  }

  #leave(owner: string, calls: Calls): void {
    const next = calls.waiting.shift();
    if (next === undefined) calls.running -= 1;
    else next();
    if (calls.running === 0) this.#owners.delete(owner);
  }

  /** Waits for a place. False: there was none in time. */
  async #waitForPlace({ waiting }: Calls, gone: AbortSignal): Promise<boolean> {
    if (waiting.length >= MOST_WAITING || gone.aborted) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const come = () => resolve(true);
    const giveUp = () => {
      // A caller that has given up must not get a place.
      const at = waiting.indexOf(come);
      if (at !== -1) waiting.splice(at, 1);
      resolve(false);
    };
    waiting.push(come);
    const timer = setTimeout(giveUp, this.#waitMs);
    using _ = addAbortListener(gone, giveUp);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }
}

const WORDS: Readonly<Record<HeavyKind, { readonly of: string; readonly hint: string }>> = {
  conversation: { of: 'for whole conversations', hint: ' Turns can be read in pages at any time.' },
  sandbox: { of: 'that work in sandboxes', hint: '' },
};

function tooMany(owner: string, running: number, kind: HeavyKind): Refusal {
  const { of, hint } = WORDS[kind];
  return new Refusal('too_many', `"${owner}" has ${running} requests ${of} already.`, {
    hint: `Wait until one has ended, and try again.${hint}`,
  });
}
