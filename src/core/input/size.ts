/**
 * About how long a value is as JSON: the lengths of its texts and field names, and a little for everything else. Texts are not
 * read, so a large one costs no more than a small one.
 */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length + SMALL;
  if (typeof value !== 'object' || value === null) return SMALL;
  let size = SMALL;
  if (Array.isArray(value)) for (const inner of value) size += sizeOf(inner);
  else for (const name of Object.keys(value)) size += name.length + sizeOf(value[name as keyof typeof value]);
  return size;
}

const SMALL = 4;
