const LONGEST = 80;

/** Any value as text for a message: short, and never throws. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : (asJson(value) ?? `a ${typeof value}`);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}

/** Null: it has no JSON form (a bigint, a cycle, a function). */
function asJson(value: unknown): string | null {
  try {
    return JSON.stringify(value) ?? null;
  } catch {
    return null;
  }
}
