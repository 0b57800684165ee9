import { ThroughlineError } from '../../../core/errors.ts';

/** How many verbs of one owner may wait. */
const MOST_WAITING = 32;

/** The verbs of one owner that run or wait. */
interface Work {
  running: number;
  readonly waiting: (() => void)[];
}

/**
 * Limits how many verbs run at once that keep a connection for long: copies, erasures, searches, checks of a chain. They get at most four tenths of
 * the connections, and one owner half of that, so that submits, claims and renewals always find a free one. The next verb is of the owner with the
 * fewest running ones. Owners with equally many take turns.
 */
export class HeavyWork {
  readonly most: number;
  readonly #mostOfOwner: number;
  /** The first owner is next, if several have equally many running verbs. */
  readonly #owners = new Map<string, Work>();
  #running = 0;

  constructor(connections: number) {
    this.most = Math.max(1, Math.floor(connections * 0.4));
    this.#mostOfOwner = Math.ceil(this.most / 2);
  }

  /** Runs it when the limits allow. Throws `too_many` when many verbs of the owner already wait. */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    await this.#come(owner);
    try {
      return await work();
    } finally {
      this.#leave(owner);
    }
  }

  #come(owner: string): Promise<void> {
    const own = this.#owners.get(owner) ?? { running: 0, waiting: [] };
    if (own.waiting.length >= MOST_WAITING) throw tooMany(owner, own);
    this.#owners.set(owner, own);
    return new Promise((resolve) => {
      own.waiting.push(resolve);
      this.#begin();
    });
  }

  #leave(owner: string): void {
    const own = this.#owners.get(owner) as Work;
    own.running -= 1;
    this.#running -= 1;
    if (own.running === 0 && own.waiting.length === 0) this.#owners.delete(owner);
    this.#begin();
  }

  #begin(): void {
    while (this.#running < this.most) {
      const next = [...this.#owners]
        .filter(([, { running, waiting }]) => waiting.length > 0 && running < this.#mostOfOwner)
        .toSorted(([, one], [, other]) => one.running - other.running)[0];
      if (next === undefined) return;
      const [owner, own] = next;
      own.running += 1;
      this.#running += 1;
      // The owner goes behind the others.
      this.#owners.delete(owner);
      this.#owners.set(owner, own);
      own.waiting.shift()?.();
    }
  }
}

function tooMany(owner: string, { running, waiting }: Work): ThroughlineError {
  return new ThroughlineError('too_many', `"${owner}" has ${running + waiting.length} long requests already.`, {
    hint: 'Wait until some have ended, and try again.',
  });
}
