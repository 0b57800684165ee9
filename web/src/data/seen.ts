import type { Conversation } from 'throughline/client';
import { readPreference, usePreference, writePreference } from './preferences.ts';

/** What somebody has looked at in this browser, by the server's clock. */
export interface Seen {
  /** Everything that changed up to then. */
  readonly all: number;
  /** And these up to a later time. */
  readonly each: Readonly<Record<string, number>>;
}

type Changed = Pick<Conversation, 'id' | 'updatedAt'>;

const NAME = 'seen';
/** The rest is forgotten, the oldest first: those count as new once more. */
const MOST = 500;

/** Null: nothing is known, or what is stored is not ours. */
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

/** Who comes for the first time has seen everything: a list of all that ever happened says nothing. */
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
