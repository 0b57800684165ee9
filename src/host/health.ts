import type { Reason } from '../core/health.ts';
import type { Health } from '../ports/health.ts';

/** Called once when a reason appears or changes, and once (`gone`) when it is taken back. */
export type Tell = (reason: Reason, gone: boolean) => void;

/** What does not work in this process. */
export class ProcessHealth implements Health {
  readonly #reasons = new Map<string, Reason>();
  readonly #tell: Tell;

  constructor(tell: Tell = () => {}) {
    this.#tell = tell;
  }

  report(part: string, reason: Reason | null): void {
    const known = this.#reasons.get(part);
    if (reason === null) this.#reasons.delete(part);
    else this.#reasons.set(part, reason);
    // The same code may have another cause: a missing file was replaced by another one.
    if (known?.code === reason?.code && known?.message === reason?.message) return;
    if (known !== undefined && known.code !== reason?.code) this.#tell(known, true);
    if (reason !== null) this.#tell(reason, false);
  }

  reasons(): readonly Reason[] {
    return [...this.#reasons.values()];
  }
}
