import type { ConversationEvent, Engine, Restore } from 'throughline/client';
import { endingIn, itemOf, type TurnItem } from './model.ts';

/** So many turns are read at once. */
export const PAGE = 40;

/** So many events there are at most between two turns, as far as anybody looks. */
const EVENTS_BETWEEN = 40;

/** The page that a turn is on. */
export function pageOf(n: number): number {
  return Math.floor((Math.max(n, 1) - 1) / PAGE);
}

/** The turns of a page with what was said in them, and the receipts. */
export async function readPage(
  engine: Engine,
  id: string,
  page: number,
): Promise<{ readonly items: readonly TurnItem[]; readonly restores: readonly Restore[] }> {
  // With the last turn of the page before: a seam is about two turns.
  const range = { after: Math.max(page * PAGE - 1, 0), upTo: (page + 1) * PAGE };
  const [turns, records, restores] = await Promise.all([
    readRange(range, (part) => engine.turns(id, part)),
    readRange(range, (part) => engine.records(id, part)),
    readRange(range, (part) => engine.restores(id, part)),
  ]);
  const parts = new Map(records.map((record) => [record.n, record.parts]));
  return { items: turns.map((turn) => itemOf(turn, parts.get(turn.n))), restores };
}

/** Every event of a turn, oldest first. */
export async function readEvents(engine: Engine, id: string, turn: number): Promise<ConversationEvent[]> {
  const pages: ConversationEvent[][] = [];
  let before: number | 'end' = 'end';
  for (;;) {
    const page: ConversationEvent[] = await engine.events(id, { turn, before, limit: 500 });
    const [first] = page;
    if (first === undefined) return pages.flat();
    pages.unshift(page);
    before = first.seq;
  }
}

/** Why the session before a turn had ended: it is said between the end of the turn before and this one. Null: nowhere. */
export async function readEndingBefore(engine: Engine, id: string, n: number, lastSeq: number): Promise<string | null> {
  const [end] = await engine.events(id, { turn: n - 1, limit: 1 });
  if (end === undefined) return null; // imported: it ended elsewhere
  const before = Math.min(end.seq + EVENTS_BETWEEN, lastSeq + 1);
  const around = await engine.events(id, { before, limit: EVENTS_BETWEEN + 5 });
  const restored = around.findIndex(({ kind, seq }) => seq > end.seq && kind === 'restore.receipt');
  const until = around.slice(0, restored === -1 ? undefined : restored);
  const ending = until.findLast((event) => endingIn(event) !== null);
  return ending === undefined ? null : (endingIn(ending) ?? '');
}

/** A page of large values is short: the rest is read after it. */
export async function readRange<T extends { readonly n: number }>(
  { after, upTo }: { after: number; upTo: number },
  read: (part: { after: number; limit: number }) => Promise<readonly T[]>,
): Promise<T[]> {
  const all: T[] = [];
  for (let last = after; last < upTo; ) {
    const part = await read({ after: last, limit: upTo - last });
    if (part.length === 0) break;
    all.push(...part.filter(({ n }) => n <= upTo));
    last = part.at(-1)?.n ?? upTo;
  }
  return all;
}
