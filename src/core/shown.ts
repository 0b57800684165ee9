const LONGEST = 80;

/** A value from outside as it is named in a message: never throws, whatever the value is, and never floods the reader. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : (asJson(value) ?? `a ${typeof value}`);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}

/** Null: JSON has no word for it (a bigint, a circle, a function). */
function asJson(value: unknown): string | null {
  try {
    return JSON.stringify(value) ?? null;
  } catch {
    return null;
  }
}
