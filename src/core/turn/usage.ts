import { invalidValue, object, whole } from '../input/schema.ts';

/**
 * What work cost, as the agent reported it. Always a delta: what this turn (or restore) added, never a running total.
 *
 * @example
 * const { usage } = await chat.ask('Hello');
 * console.log(usage.inputTokens + usage.outputTokens, `${usage.costMicros / 1e6} USD`);
 */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** In millionths of a US dollar, so that sums stay exact. */
  readonly costMicros: number;
  readonly modelCalls: number;
  /**
   * Turns whose cost is not known, because they were cut off or completed without us: `costMicros` is too low by these. Left out: none.
   */
  readonly unknownCosts?: number;
  /** Turns that completed and used tokens, whose agent reported no cost: `costMicros` is too low by these, too. Left out: none. */
  readonly unreportedCosts?: number;
}

export const NO_USAGE: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costMicros: 0,
  modelCalls: 0,
};

export function addUsage(a: Usage, b: Partial<Usage>): Usage {
  return {
    inputTokens: a.inputTokens + (b.inputTokens ?? 0),
    outputTokens: a.outputTokens + (b.outputTokens ?? 0),
    cacheReadTokens: a.cacheReadTokens + (b.cacheReadTokens ?? 0),
    cacheWriteTokens: a.cacheWriteTokens + (b.cacheWriteTokens ?? 0),
    costMicros: a.costMicros + (b.costMicros ?? 0),
    modelCalls: a.modelCalls + (b.modelCalls ?? 0),
    ...counted('unknownCosts', a, b),
    ...counted('unreportedCosts', a, b),
  };
}

/** Older versions have stored usage without these. */
export const OPTIONAL_COUNTS = ['unknownCosts', 'unreportedCosts'] as const;
type OptionalCount = (typeof OPTIONAL_COUNTS)[number];

function counted(name: OptionalCount, a: Partial<Usage>, b: Partial<Usage>): Partial<Usage> {
  const count = (a[name] ?? 0) + (b[name] ?? 0);
  return count === 0 ? {} : { [name]: count };
}

const amount = whole({ least: 0 });
const USAGE = object({
  inputTokens: amount,
  outputTokens: amount,
  cacheReadTokens: amount,
  cacheWriteTokens: amount,
  costMicros: amount,
  modelCalls: amount,
} satisfies Record<Exclude<keyof Usage, OptionalCount>, unknown>);

/** Checks a usage that a caller reports. Throws `invalid` and names the wrong field. */
export function parseUsage(input: unknown): Partial<Usage> {
  return USAGE.read(input, ['usage'], invalidValue());
}
