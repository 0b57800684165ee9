/**
 * About how much a value takes, as JSON would: the lengths of its texts and names, and a little for everything else. No text is
 * looked into, so that a large value costs no more than a small one.
 */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + SMALL;
  if (typeof value !== 'object' || value === null) return SMALL;
  let size = SMALL;
  if (Array.isArray(value)) for (const inner of value) size += sizeOf(inner);
  else for (const [name, inner] of Object.entries(value)) size += name.length + sizeOf(inner);
  return size;
}

const SMALL = 4;
