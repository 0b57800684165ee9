import { made, orNull, type Schema, value } from '../input/schema.ts';
import { isObject } from '../turn/content.ts';
import type { Usage } from '../turn/usage.ts';

/** The most that may be spent; null: no limit. */
export interface Budget {
  readonly costMicros: number | null;
  /** All kinds together: input, output, cache reads and cache writes. */
  readonly tokens: number | null;
}

export const NO_BUDGET: Budget = { costMicros: null, tokens: null };

const AMOUNT = /^\s*(?:(\$)\s*)?(\d{1,12}(?:\.\d{1,6})?)\s*(k|m)?\s*(usd|dollars?|tokens?)?\s*$/i;
const SCALE: Record<string, number> = { '': 1, k: 1_000, m: 1_000_000 };

/** A budget as a caller writes it: an amount with its unit, or amounts by unit. */
export type BudgetInput = string | { readonly usd?: number | undefined; readonly tokens?: number | undefined };

/** `2.50 USD`, `$2.50`, `50000 tokens`, `50k tokens`, or `{usd}`, `{tokens}`. Null: anything else. */
export function parseBudget(input: unknown): Budget | null {
  if (isObject(input)) return fromObject(input);
  if (typeof input !== 'string') return null;
  const [, dollar, amount = '', scale = '', unit = ''] = AMOUNT.exec(input) ?? [];
  if (amount === '') return null;
  const inTokens = /^token/i.test(unit);
  const inDollars = dollar !== undefined || /^(usd|dollar)/i.test(unit);
  // A bare number could be either, and a wrong guess would be expensive.
  if (inTokens === inDollars) return null;
  if (inDollars) return scale === '' ? dollars(amount) : null;
  return tokens(Number(amount) * (SCALE[scale.toLowerCase()] ?? 1));
}

function fromObject(input: Record<string, unknown>): Budget | null {
  const { usd, tokens: count, ...rest } = input;
  if (Object.keys(rest).length > 0 || (usd === undefined && count === undefined)) return null;
  const inDollars = usd === undefined ? NO_BUDGET : typeof usd === 'number' ? dollars(String(usd)) : null;
  const inTokens = count === undefined ? NO_BUDGET : typeof count === 'number' ? tokens(count) : null;
  return inDollars && inTokens && { costMicros: inDollars.costMicros, tokens: inTokens.tokens };
}

function dollars(amount: string): Budget | null {
  const costMicros = Math.round(Number(amount) * 1_000_000);
  return Number.isSafeInteger(costMicros) && costMicros > 0 ? { costMicros, tokens: null } : null;
}

function tokens(count: number): Budget | null {
  return Number.isSafeInteger(count) && count > 0 ? { costMicros: null, tokens: count } : null;
}

const JSON_AMOUNT = {
  anyOf: [
    { type: 'string', pattern: '^ *(\\$ *[0-9.]+|[0-9.]+ *([Uu][Ss][Dd]|dollars?|[kKmM]? *tokens?)) *$' },
    {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      properties: { usd: { type: 'number', exclusiveMinimum: 0 }, tokens: { type: 'integer', minimum: 1 } },
    },
  ],
};

/** What may be spent; null: no limit. */
export const BUDGET: Schema<BudgetInput | null, Budget> = made(
  orNull(value<BudgetInput>(() => true, 'an amount', JSON_AMOUNT)),
  'an amount such as "5 USD" or "200k tokens", or null for none',
  (input) => (input === null ? NO_BUDGET : parseBudget(input)),
);

/** The usage of a turn whose cost nobody can know: it was cut off, or it completed without us. Its tokens may be known. */
export function withUnknownCost(usage: Usage): Usage {
  return { ...usage, unknownCosts: 1 };
}

/** Turns completed and used tokens, and no cost was reported for any. */
export function isUnpriced({ costMicros, unreportedCosts = 0 }: Usage): boolean {
  return costMicros === 0 && unreportedCosts > 0;
}

/** The usage of a turn whose end we saw, and that completed. An agent that used tokens and named no cost does not report it. */
export function ofCompleted(usage: Usage): Usage {
  const isKnown = usage.costMicros > 0 || usage.unknownCosts !== undefined || tokensOf(usage) === 0;
  return isKnown ? usage : { ...usage, unreportedCosts: 1 };
}

export function tokensOf({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }: Usage): number {
  return inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
}

/** `2.50 USD`, for people. */
export const usd = (micros: number): string => `${(micros / 1_000_000).toFixed(4).replace(/0{1,2}$/, '')} USD`;

/** `0.70 USD + 1 turn unknown`, for people. Null: nothing is known of a cost, and nothing shows that there was one. */
export function costText({ costMicros, unknownCosts = 0, unreportedCosts = 0 }: Usage): string | null {
  // Of an agent that never reports its cost there is no sum that could be too low.
  const unknown = unknownCosts + (costMicros > 0 ? unreportedCosts : 0);
  const turns = `${unknown} turn${unknown === 1 ? '' : 's'} unknown`;
  if (costMicros === 0) return unknown === 0 ? null : turns;
  return unknown === 0 ? usd(costMicros) : `${usd(costMicros)} + ${turns}`;
}
