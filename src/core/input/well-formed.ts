import { ThroughlineError } from '../errors.ts';

/*
 * An unpaired surrogate is half of a character. A JavaScript text can hold it, UTF-8 cannot. Agents hang on it or replace it, and a
 * database stores all of them as the same character. So it is refused in what callers give, and replaced in what agents say.
 */

/** With the flag `u`, a pair is one character and does not match. */
const UNPAIRED = /[\ud800-\udfff]/u;

interface Place {
  /** Where in the value the text is: `resource.text`, `[2].name`; empty: the value is the text. */
  readonly path: string;
  /** The place in that text, counted from 0 in units of UTF-16, as JavaScript does. */
  readonly index: number;
  /** `U+D83D`. */
  readonly code: string;
}

/** The first unpaired surrogate in a value, also in the names of its fields; null: there is none. */
export function findUnpaired(value: unknown): Place | null {
  // Without recursion, and nothing twice: the value may be very deep or have cycles.
  const open = [{ path: '', value }];
  const seen = new Set<unknown>();
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const { path, value: inner } = at;
    if (typeof inner === 'string') {
      if (!inner.isWellFormed()) return placeIn(inner, path);
    } else if (typeof inner === 'object' && inner !== null && !seen.has(inner)) {
      seen.add(inner);
      const fields = Object.entries(inner);
      const name = fields.find(([one]) => !one.isWellFormed())?.[0];
      if (name !== undefined) return placeIn(name, `${path === '' ? '' : `${path}: `}a field name`);
      for (const [one, held] of fields.reverse())
        open.push({ path: joined(path, one, Array.isArray(inner)), value: held });
    }
  }
  return null;
}

function placeIn(text: string, path: string): Place {
  const index = text.search(UNPAIRED);
  return { path, index, code: `U+${text.charCodeAt(index).toString(16).toUpperCase()}` };
}

function joined(path: string, name: string, inList: boolean): string {
  if (inList) return `${path}[${name}]`;
  return path === '' ? name : `${path}.${name}`;
}

/** What is wrong, as a sentence. `what`: "The prompt". */
export function unpairedIn(what: string, { index, code }: Pick<Place, 'index' | 'code'>): string {
  return `${what} contains an unpaired surrogate, ${code} at index ${index}.`;
}

export const UNPAIRED_HINT =
  'It is half of a character, often of one that was cut in two. Send the whole character, or U+FFFD in its place.';

/** Throws `invalid` with the place of the first unpaired surrogate. `what`: "The prompt". */
export function checkWellFormed(value: unknown, what: string): void {
  const place = findUnpaired(value);
  if (place === null) return;
  const where = place.path === '' ? what : `${what} (${place.path})`;
  throw new ThroughlineError('invalid', unpairedIn(where, place), { hint: UNPAIRED_HINT });
}

/** The value with U+FFFD for every unpaired surrogate, also in the names of fields. The value itself where there is none. */
export function wellFormed<T>(value: T): T {
  return isWellFormed(value) ? value : (replaced(value) as T);
}

/** The usual case, which is checked without copying. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isWellFormed);
  if (!isPlain(value)) return true;
  for (const name in value) if (!name.isWellFormed() || !isWellFormed(value[name])) return false;
  return true;
}

function replaced(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) {
    const items = value.map(replaced);
    return items.some((item, i) => item !== value[i]) ? items : value;
  }
  if (!isPlain(value)) return value;
  const before = Object.entries(value);
  const after = before.map(([name, inner]) => [name.toWellFormed(), replaced(inner)] as const);
  const same = after.every(([name, inner], i) => name === before[i]?.[0] && inner === before[i]?.[1]);
  return same ? value : Object.fromEntries(after);
}

/** Other objects, such as bytes, stay as they are. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
