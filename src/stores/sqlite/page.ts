import { sizeOf } from '../../core/size.ts';

/** A page ends with the value that brings it here: it is read in one go, and whoever serves it has it in memory whole. */
const LARGEST_PAGE = 8 * 1024 * 1024;

/** The values of the rows, as far as they make one page: at least one, and not all when they are large. */
export function pageOf<Row, T>(rows: Iterable<Row>, read: (row: Row) => T): T[] {
  const page: T[] = [];
  let size = 0;
  for (const row of rows) {
    const value = read(row);
    page.push(value);
    size += sizeOf(value);
    if (size >= LARGEST_PAGE) break;
  }
  return page;
}
