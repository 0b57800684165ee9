import { ThroughlineError } from '../errors.ts';
import { checkLimit, shown } from './arguments.ts';

/** A page of sums by day (UTC), the newest day first. */
export interface UsagePage<Last extends { readonly day: string }> {
  /** From this day on, as 2026-01-31. */
  readonly since?: string | undefined;
  readonly limit?: number | undefined;
  /** The last row of the previous page, or the fields that identify it. */
  readonly before?: Last | undefined;
}

/** The page that a caller asks for, with its limit filled in. Throws `invalid`. */
export function checkUsagePage<Last extends { readonly day: string }>(page: UsagePage<Last>) {
  const { since, limit, before } = page;
  if (since !== undefined) checkDay(since);
  if (before !== undefined) checkDay(before.day);
  return { ...page, limit: checkLimit(limit, 100) };
}

function checkDay(value: unknown): void {
  if (!isDay(value)) throw new ThroughlineError('invalid', `A day is like 2026-01-31, not ${shown(value)}.`);
}

export function isDay(value: unknown): boolean {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(value)) return false;
  const date = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value);
}
