import { isObject } from '../../core/content.ts';
import type { Usage } from '../../core/usage.ts';
import { asObject } from './capabilities.ts';

/** What the answer to a prompt says that it cost. The protocol calls that field unstable; null: the agent does not say. */
export function tokensOf(response: unknown): Partial<Usage> | null {
  const { usage } = asObject(response);
  if (!isObject(usage)) return null;
  return {
    inputTokens: count(usage.inputTokens),
    outputTokens: count(usage.outputTokens),
    cacheReadTokens: count(usage.cachedReadTokens),
    cacheWriteTokens: count(usage.cachedWriteTokens),
  };
}

/**
 * Makes what a turn has cost of the running total that an agent tells. The total goes on after a restart with some agents and
 * begins anew with others, so the last one is kept with the session: one that has fallen has begun anew.
 */
export class CostMeter {
  #total: number;
  #window = 0;
  readonly #onWindow: (tokens: number) => void;

  /** `onWindow` is told the size of the model's window, whenever it is another one. */
  constructor(memo: string | null, onWindow: (tokens: number) => void) {
    this.#total = count(Number(memo ?? 0));
    this.#onWindow = onWindow;
  }

  get memo(): string {
    return String(this.#total);
  }

  /** What a `usage_update` adds; null: nothing. */
  read(update: Readonly<Record<string, unknown>>): Partial<Usage> | null {
    const window = count(update.size);
    if (window > 0 && window !== this.#window) this.#onWindow(window);
    this.#window = window;
    const { amount, currency } = asObject(update.cost);
    if (typeof amount !== 'number' || currency !== 'USD') return null;
    const total = Math.round(amount * 1_000_000);
    const added = total >= this.#total ? total - this.#total : total;
    this.#total = total;
    return added > 0 ? { costMicros: added } : null;
  }
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;
}
