import type { ConversationEvent, Engine, Restore, TurnOutline, TurnRecord, TurnView } from 'throughline/client';
import { endingIn, itemOf, type TurnItem } from './model.ts';

/** How many turns are read at once. */
export const PAGE = 40;

/** How many events after the end of a turn are searched. */
const EVENTS_BETWEEN = 40;

/** The page that a turn is on. */
export function pageOf(n: number): number {
  return Math.floor((Math.max(n, 1) - 1) / PAGE);
}

interface Read {
  readonly items: readonly TurnItem[];
  readonly restores: readonly Restore[];
}

/** The turns of a page with their parts, and the receipts. `last`: the number of the last known turn. */
export async function readPage(engine: Engine, id: string, page: number, last: number): Promise<Read> {
  // Includes the last turn of the page before: a seam is between two turns.
  const after = Math.max(page * PAGE - 1, 0);
  // There is nothing to read after the last turn.
  const range = { after, upTo: Math.min((page + 1) * PAGE, Math.max(last, after + 1)) };
  const [turns, records, restores] = await Promise.all([
    readRange(range, (part) => engine.turns(id, part)),
    readRange(range, (part) => engine.records(id, part)),
    engine.restores(id, { after, limit: PAGE + 1 }),
  ]);
  const end = (page + 1) * PAGE;
  return { items: itemsOf(turns, records), restores: restores.filter(({ n }) => n <= end) };
}

/** The last turns: a page and the turn before it, or fewer if they are large. */
export async function readEnd(engine: Engine, id: string): Promise<Read> {
  const end = { before: 'end', limit: PAGE + 1 } as const;
  const [turns, records, restores] = await Promise.all([
    engine.turns(id, end),
    engine.records(id, end),
    engine.restores(id, end),
  ]);
  const first = turns.at(0)?.n ?? 1;
  const all = [...records];
  for (let earliest = all.at(0); earliest !== undefined && earliest.n > first; ) {
    const more: TurnRecord[] = await engine.records(id, { before: earliest.n, limit: earliest.n - first });
    all.unshift(...more);
    earliest = more.at(0);
  }
  return { items: itemsOf(turns, all), restores };
}

function itemsOf(turns: readonly TurnView[], records: readonly TurnRecord[]): TurnItem[] {
  const parts = new Map(records.map((record) => [record.n, record.parts]));
  return turns.map((turn) => itemOf(turn, parts.get(turn.n)));
}

const OUTLINE_PAGE = 1_000;

/** Every turn after this one, without its texts. */
export async function readOutline(engine: Engine, id: string, after: number): Promise<TurnOutline[]> {
  const all: TurnOutline[] = [];
  for (;;) {
    const page = await engine.outline(id, { after: all.at(-1)?.n ?? after, limit: OUTLINE_PAGE });
    all.push(...page);
    if (page.length < OUTLINE_PAGE) return all;
  }
}

/** The turns before the first one that may still change. */
export function endedIn(turns: readonly TurnOutline[]): readonly TurnOutline[] {
  const open = turns.findIndex(({ endedAt }) => endedAt === null);
  return open < 0 ? turns : turns.slice(0, open);
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
    if (first.kind === 'turn.queued') return pages.flat(); // the first event of every turn
    before = first.seq;
  }
}

/** Why the session before a turn had ended, from the events between the previous turn and this one. Null: not recorded. */
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

/** Reads all of a range. A page of large values is shorter than its limit. */
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
