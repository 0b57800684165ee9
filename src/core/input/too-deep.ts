/**
 * How many levels what an agent sends may have. JSON.parse reads any depth, but JSON.stringify and everything else that goes through a
 * value has a limit: without a check our code would fail later.
 */
export const DEEPEST = 200;

export function isTooDeep(value: unknown): boolean {
  return isDeeper(value, DEEPEST);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
