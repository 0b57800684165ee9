import { sizeOf } from '../../../core/size.ts';

/** A page ends with the value that brings it here: it is read in one go, and whoever serves it has it in memory whole. */
const LARGEST_PAGE = 8 * 1024 * 1024;

/** There is none after it: a page that begins before it begins with the newest. */
export const LAST_DAY = '9999-12-31';

export interface Bounds {
  /** At most so many values; left out: any number. */
  readonly limit?: number | undefined;
  /** A page of more bytes than these is no smaller; left out: the largest. */
  readonly bytes?: number | undefined;
}

/** The values of the rows, as far as they make one page: at least one, and not all when they are large. */
export function pageOf<Row, T>(rows: Iterable<Row>, read: (row: Row) => T, bounds: Bounds = {}): T[] {
  const { limit = Number.POSITIVE_INFINITY, bytes = LARGEST_PAGE } = bounds;
  const page: T[] = [];
  if (limit <= 0) return page;
  let size = 0;
  for (const row of rows) {
    const value = read(row);
    page.push(value);
    size += sizeOf(value);
    if (page.length >= limit || size >= bytes) break;
  }
  return page;
}
