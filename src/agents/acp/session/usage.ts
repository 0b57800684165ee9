import { isObject } from '../../../core/content.ts';
import type { Usage } from '../../../core/usage.ts';
import { type AgentIdentity, asObject } from '../connection/capabilities.ts';

/** Counts tokens since its process began, and not since the prompt did: seen in 1.0.102. Nothing in its answers says so. */
const ADDS_UP: readonly string[] = ['Copilot'];

/** Reads what the answers to an agent's prompts say that these cost. The protocol calls that field unstable. */
export class TokenMeter {
  readonly #addsUp: boolean;
  #total: Tokens = NO_TOKENS;

  constructor({ name }: Pick<AgentIdentity, 'name'>) {
    this.#addsUp = ADDS_UP.includes(name);
  }

  /** What this answer adds; null: the agent does not say. */
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
    // A total does not fall: one that did is none, and this version tells what a prompt has cost.
    const fell = KINDS.some((kind) => said[kind] < before[kind]);
    return fell ? said : (Object.fromEntries(KINDS.map((kind) => [kind, said[kind] - before[kind]])) as Tokens);
  }
}

const KINDS = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'] as const;
type Tokens = Pick<Usage, (typeof KINDS)[number]>;
const NO_TOKENS: Tokens = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/**
 * Makes what a turn has cost of the running total that an agent tells. The total goes on after a restart with some agents and
 * begins anew with others, so the last one is kept with the session: one that has fallen has begun anew.
 */
export class CostMeter {
  #total: number;
  /** What was added, and not taken yet. */
  #added = 0;
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

  /** Reads a `usage_update`. `paid`: what it tells belongs to earlier turns. */
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

  /** What was added since it was last taken; null: nothing. */
  take(): Partial<Usage> | null {
    const costMicros = this.#added;
    this.#added = 0;
    return costMicros > 0 ? { costMicros } : null;
  }
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;
}
