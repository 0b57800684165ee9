import type { StoreMeasure } from '../../ports/store/census.ts';

/** How many transactions were committed, and how long the last ones took. */
export class CommitTimes {
  count = 0;
  /** The oldest is overwritten. */
  readonly #took = new Float64Array(256);

  add(ms: number): void {
    this.#took[this.count % this.#took.length] = ms;
    this.count += 1;
  }

  latency(): StoreMeasure['commitMs'] {
    const took = this.#took.slice(0, this.count).sort();
    const at = (share: number) => took[Math.ceil(took.length * share) - 1] ?? 0;
    return took.length === 0 ? null : { p50: at(0.5), p95: at(0.95), max: at(1) };
  }
}
