import { execFileSync } from 'node:child_process';

/** A pseudo-random generator: the same seed makes the same choices. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** At least 0 and less than 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `from` to `to`, both included. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.whole(0, items.length - 1)];
    if (item === undefined) throw new Error('nothing to choose from');
    return item;
  }
}

/**
 * The seed of this run. `THROUGHLINE_SEED` repeats an earlier one: the choices are the same, but the timing differs.
 *
 * The seed comes from the committed tree. So every change is tested with other choices, and the same commit always with the same ones: a
 * failed run does not pass by being repeated. In the long mode, and outside of a checkout, every run has a new seed.
 */
export function seedOfRun(): number {
  const given = process.env.THROUGHLINE_SEED;
  if (!given) return (process.env.THROUGHLINE_LONG ? null : seedOfTree()) ?? Math.floor(Math.random() * 2 ** 31);
  const seed = Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`THROUGHLINE_SEED must be a whole number, not ${given}`);
  return seed;
}

let ofTree: number | null | undefined;

/** Null: this is not a git checkout. */
function seedOfTree(): number | null {
  if (ofTree !== undefined) return ofTree;
  try {
    const tree = execFileSync('git', ['rev-parse', 'HEAD^{tree}'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    ofTree = Number.parseInt(tree.slice(0, 7), 16);
  } catch {
    ofTree = null;
  }
  return ofTree;
}
