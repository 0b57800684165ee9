import type { Conversation } from 'throughline/client';
import { readPreference, usePreference, writePreference } from './preferences.ts';

/** Which changes were seen in this browser, by the server's clock. */
export interface Seen {
  /** All conversations were seen up to this time. */
  readonly all: number;
  /** These were seen up to a later time. */
  readonly each: Readonly<Record<string, number>>;
}

type Changed = Pick<Conversation, 'id' | 'updatedAt'>;

const NAME = 'seen';
/** More are dropped, the oldest first. Those count as new again. */
const MOST = 500;

/** Null: nothing valid is stored. */
export function parseSeen(stored: string | null): Seen | null {
  try {
    const { all, each } = JSON.parse(stored ?? 'null') as Seen;
    return Number.isFinite(all) && typeof each === 'object' && each !== null ? { all, each } : null;
  } catch {
    return null;
  }
}

export function isNew(seen: Seen, { id, updatedAt }: Changed): boolean {
  return updatedAt > Math.max(seen.all, seen.each[id] ?? 0);
}

export function withSeen(seen: Seen, { id, updatedAt }: Changed): Seen {
  const each = Object.entries({ ...seen.each, [id]: updatedAt }).filter(([, at]) => at > seen.all);
  const newest = each.sort(([, a], [, b]) => b - a).slice(0, MOST);
  return { ...seen, each: Object.fromEntries(newest) };
}

/** On the first visit everything counts as seen: otherwise every old conversation would be new. */
export function firstSeen(rows: Iterable<Changed>): Seen {
  return { all: Math.max(0, ...[...rows].map(({ updatedAt }) => updatedAt)), each: {} };
}

export function useSeen(): Seen | null {
  return parseSeen(usePreference(NAME)[0]);
}

export function markSeen(row: Changed): void {
  const seen = parseSeen(readPreference(NAME));
  if (seen !== null && isNew(seen, row)) keepSeen(withSeen(seen, row));
}

export function keepSeen(seen: Seen): void {
  writePreference(NAME, JSON.stringify(seen));
}
