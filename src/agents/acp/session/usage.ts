import { isObject } from '../../../core/turn/content.ts';
import type { Usage } from '../../../core/turn/usage.ts';
import { asObject } from '../../shared/json.ts';
import type { Quirks } from '../known/description.ts';

/** Reads the tokens that a prompt used from the answer to it. In the protocol that field is unstable. */
export class TokenMeter {
  readonly #addsUp: boolean;
  #total: Tokens = NO_TOKENS;

  constructor({ addsUpTokens }: Quirks) {
    this.#addsUp = addsUpTokens === true;
  }

  /** The tokens of this prompt; null: the agent does not report them. */
  read(response: unknown): Tokens | null {
    const { usage } = asObject(response);
    if (!isObject(usage)) return null;
    const said = {
      inputTokens: count(usage.inputTokens),
      outputTokens: count(usage.outputTokens),
      cacheReadTokens: count(usage.cachedReadTokens),
      cacheWriteTokens: count(usage.cachedWriteTokens),
    };
    if (!this.#addsUp) return said;
    const before = this.#total;
    this.#total = said;
    // A total never falls. If it does, this version of the agent counts per prompt.
    const fell = KINDS.some((kind) => said[kind] < before[kind]);
    return fell ? said : (Object.fromEntries(KINDS.map((kind) => [kind, said[kind] - before[kind]])) as Tokens);
  }
}

const KINDS = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'] as const;
type Tokens = Pick<Usage, (typeof KINDS)[number]>;
const NO_TOKENS: Tokens = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/**
 * Computes the cost of a turn from the running total that an agent reports. After a restart, some agents continue the total and
 * others start again at zero. So the last total is kept with the session: a lower one has started again.
 */
export class CostMeter {
  #total: number;
  /** The cost that was not taken yet. */
  #added = 0;
  #window = 0;
  readonly #onWindow: (tokens: number) => void;

  /** `onWindow` gets the size of the model's window whenever it changes. */
  constructor(memo: string | null, onWindow: (tokens: number) => void) {
    this.#total = count(Number(memo ?? 0));
    this.#onWindow = onWindow;
  }

  get memo(): string {
    return String(this.#total);
  }

  /** Reads a `usage_update`. `paid`: its cost belongs to earlier turns. */
  read(update: Readonly<Record<string, unknown>>, paid = false): void {
    const window = count(update.size);
    if (window > 0 && window !== this.#window) this.#onWindow(window);
    this.#window = window;
    const { amount, currency } = asObject(update.cost);
    const total = Math.round(Number(amount) * 1_000_000);
    if (typeof amount !== 'number' || currency !== 'USD' || !Number.isSafeInteger(total) || total < 0) return;
    if (!paid) this.#added += total >= this.#total ? total - this.#total : total;
    this.#total = total;
  }

  /** The cost since it was last taken; null: none. */
  take(): Partial<Usage> | null {
    const costMicros = this.#added;
    this.#added = 0;
    return costMicros > 0 ? { costMicros } : null;
  }
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;
}
