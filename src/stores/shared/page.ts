import { sizeOf } from '../../core/input/size.ts';

/** A page ends with the value that reaches this size: a page is in memory as a whole. */
export const LARGEST_PAGE = 8 * 1024 * 1024;

/** Later than every day, so that a page before it begins with the newest. */
export const LAST_DAY = '9999-12-31';

export interface Bounds {
  /** The most values; left out: any number. */
  readonly limit?: number | undefined;
  /** The size at which a page ends; left out: the largest. */
  readonly bytes?: number | undefined;
}

/** Reports rows that cannot be read. */
export interface DamageReporter {
  readonly onDamage: (error: unknown) => void;
}

/**
 * The values of rows that belong to several conversations or tasks. A damaged one is reported and left out, so that the others are
 * still found. Where there is a next page, the statement has no limit: a page of damaged rows alone would look like the end.
 */
export function* readable<Row, T>(db: DamageReporter, rows: Iterable<Row>, read: (row: Row) => T): Generator<T> {
  for (const row of rows) {
    try {
      yield read(row);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      db.onDamage(error);
    }
  }
}

/** The values of the rows, up to the bounds of a page, but at least one. */
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

/** How long the texts of one step may be together: reading and hashing them takes milliseconds. */
const STEP_LENGTH = 1_048_576;

/** The first rows, up to a length of their texts that one step can take; at least one, if there is any. */
export function rowsOfStep<Row>(rows: Iterable<Row>, textOf: (row: Row) => string | null): Row[] {
  const step: Row[] = [];
  let length = 0;
  for (const row of rows) {
    step.push(row);
    length += textOf(row)?.length ?? 0;
    if (length >= STEP_LENGTH) break;
  }
  return step;
}
