import type { Usage } from '../../core/usage.ts';

/** What was used, in one line. Zeros of rarer kinds are left out. */
export function usageLine(usage: Usage): string {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costMicros, modelCalls } = usage;
  const parts = [`${inputTokens} tokens in`, `${outputTokens} out`];
  if (cacheReadTokens > 0) parts.push(`${cacheReadTokens} from cache`);
  if (cacheWriteTokens > 0) parts.push(`${cacheWriteTokens} to cache`);
  parts.push(`${modelCalls} model ${modelCalls === 1 ? 'call' : 'calls'}`);
  if (costMicros > 0) parts.push(`$${(costMicros / 1_000_000).toFixed(4)}`);
  return parts.join(', ');
}
