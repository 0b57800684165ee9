import { useEffect } from 'react';
import type { Conversation, ConversationState, ThroughlineClient } from 'throughline/client';
import { create } from 'zustand';
import { Newest } from './newest.ts';
import { useClient, useLive } from './session.ts';

/** Which conversations the rail shows; null: all. */
export interface ListFilter {
  readonly agent: string | null;
  readonly states: readonly ConversationState[] | null;
  /** Changed within this many days. */
  readonly days: number | null;
}

/** The conversations of this owner that were read. */
interface ListState {
  readonly phase: 'loading' | 'ready' | 'failed';
  readonly error: unknown;
  /** Those that match the filter, most recently changed first. */
  readonly rows: readonly Conversation[];
  /** The last page was not empty: there may be more. */
  readonly hasMore: boolean;
  readonly filter: ListFilter;
  /** Everything that was read, whatever the filter: the most recent ones, and all that are open or need a person. */
  readonly known: ReadonlyMap<string, Conversation>;
}

export const NO_FILTER: ListFilter = { agent: null, states: null, days: null };

export const useList = create<ListState>(() => ({
  phase: 'loading',
  error: null,
  rows: [],
  hasMore: false,
  filter: NO_FILTER,
  known: new Map(),
}));

const OPEN: readonly ConversationState[] = ['asks', 'running', 'queued', 'unrestored'];

const newest = new Newest();

const PAGE = 50;
/** Hints come in bursts while an agent streams: the list is read soon after the first one, then at most once a second. */
const FIRST_MS = 100;
const BETWEEN_MS = 1_000;

/** Keeps the list current for as long as the component is shown. */
export function useKeepList(): void {
  const [tl, live] = [useClient(), useLive()];
  useEffect(() => {
    const hinted = new Set<string>();
    let [timer, lastAt, isAll] = [0, 0, false];
    const read = async () => {
      timer = 0;
      lastAt = performance.now();
      const touched = new Set(hinted);
      hinted.clear();
      // More have changed than fit on the first page.
      if (isAll || touched.size >= PAGE) await readOpen(tl);
      isAll = false;
      await readNewest(tl, touched);
    };
    void readOpen(tl).then(() => readNewest(tl, hinted));
    const stop = live.onHint(({ conversationId }) => {
      if (conversationId === null) isAll = true;
      else hinted.add(conversationId);
      if (timer !== 0) return;
      timer = window.setTimeout(read, Math.max(FIRST_MS, lastAt + BETWEEN_MS - performance.now()));
    });
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, [tl, live]);
}

/** Reads the conversations that are open or could not be restored, however long ago they changed. */
async function readOpen(tl: ThroughlineClient): Promise<void> {
  try {
    const open = await newest.of('open', tl.conversations({ state: OPEN, limit: 200 }));
    if (open === null) return;
    // One that is no longer open has changed, so it is read with the newest; or it was erased.
    useList.setState(({ known }) => {
      const rest = [...known].filter(([, row]) => !OPEN.includes(row.state));
      return { known: knownWith(new Map(rest), open) };
    });
  } catch (error) {
    useList.setState(({ rows }) => ({ phase: rows.length > 0 ? 'ready' : 'failed', error }));
  }
}

/** Reads the newest conversations, and the newest that match the filter. `touched`: those that have changed; one that is not found was erased. */
async function readNewest(tl: ThroughlineClient, touched: ReadonlySet<string>): Promise<void> {
  const { filter } = useList.getState();
  try {
    const isFiltered = filter !== NO_FILTER;
    const answers = Promise.all([
      tl.conversations({ limit: PAGE }),
      isFiltered ? tl.conversations({ ...optionsOf(filter), limit: PAGE }) : null,
    ]);
    const read = await newest.of('rows', answers);
    if (read === null) return;
    useList.setState((before) => {
      const [first, matching] = read.map((rows) => rows && asKnown(rows, before.known)) as typeof read;
      const known = knownWith(before.known, first);
      for (const id of touched) if (first.length < PAGE && !first.some((row) => row.id === id)) known.delete(id);
      if (before.filter !== filter) return { known };
      const { rows, hasMore } = withNewest(before, matching ?? first, touched);
      return { phase: 'ready', error: null, known, rows, hasMore };
    });
  } catch (error) {
    useList.setState(({ rows }) => ({ phase: rows.length > 0 ? 'ready' : 'failed', error }));
  }
}

/**
 * The rows after their first page was read again. Rows are in the order of their last change. So if the new page has a row that has not
 * changed, the older rows below it have not changed either, and stay. Otherwise they are read again when somebody scrolls there.
 */
export function withNewest(
  before: Pick<ListState, 'rows' | 'hasMore'>,
  newest: readonly Conversation[],
  touched: ReadonlySet<string>,
  page = PAGE,
): Pick<ListState, 'rows' | 'hasMore'> {
  if (newest.length < page) return { rows: newest, hasMore: false };
  const changedAt = new Map(before.rows.map(({ id, updatedAt }) => [id, updatedAt]));
  const joins = newest.some(({ id, updatedAt }) => changedAt.get(id) === updatedAt);
  const end = newest.at(-1);
  if (!joins || end === undefined) return { rows: newest, hasMore: true };
  const fresh = new Set(newest.map(({ id }) => id));
  const older = before.rows.filter((row) => !fresh.has(row.id) && !touched.has(row.id) && isBelow(row, end));
  return { rows: [...newest, ...older], hasMore: older.length > 0 ? before.hasMore : true };
}

function isBelow(row: Conversation, other: Conversation): boolean {
  return row.updatedAt < other.updatedAt || (row.updatedAt === other.updatedAt && row.id < other.id);
}

/** Rows that have not changed stay the same objects, and are not rendered again. */
function asKnown(rows: readonly Conversation[], known: ReadonlyMap<string, Conversation>): Conversation[] {
  return rows.map((row) => {
    const before = known.get(row.id);
    return before !== undefined && JSON.stringify(before) === JSON.stringify(row) ? before : row;
  });
}

function knownWith(known: ReadonlyMap<string, Conversation>, rows: readonly Conversation[]): Map<string, Conversation> {
  const next = new Map(known);
  for (const row of rows) next.set(row.id, row);
  return next;
}

/** Adds rows that were read elsewhere. Rows that the list already has are at least as new, and stay. */
export function addKnown(rows: readonly Conversation[]): void {
  const unknown = rows.filter(({ id }) => !useList.getState().known.has(id));
  if (unknown.length > 0) useList.setState(({ known }) => ({ known: knownWith(known, unknown) }));
}

function optionsOf({ agent, states, days }: ListFilter) {
  return {
    ...(agent !== null && { agent }),
    ...(states !== null && { state: states }),
    ...(days !== null && { since: Date.now() - days * 86_400_000 }),
  };
}

/** The previous rows stay until the matching ones have arrived. */
export async function chooseFilter(tl: ThroughlineClient, filter: ListFilter): Promise<void> {
  const isNone = filter.agent === null && filter.states === null && filter.days === null;
  const chosen = isNone ? NO_FILTER : filter;
  useList.setState({ filter: chosen });
  try {
    const rows = await tl.conversations({ ...optionsOf(chosen), limit: PAGE });
    useList.setState((now) =>
      now.filter === chosen
        ? { rows, hasMore: rows.length === PAGE, known: knownWith(now.known, rows), error: null }
        : {},
    );
  } catch (error) {
    useList.setState({ error });
  }
}

let reading: Promise<void> | null = null;

/** Reads the next page. Concurrent calls share one request. */
export function readMore(tl: ThroughlineClient): Promise<void> {
  reading ??= readPage(tl).finally(() => {
    reading = null;
  });
  return reading;
}

/** Reads again if the end of the list has changed meanwhile. Ends are compared by value: reading the list again makes new objects. */
async function readPage(tl: ThroughlineClient): Promise<void> {
  const { filter } = useList.getState();
  for (let isRead = false; !isRead; ) {
    const last = useList.getState().rows.at(-1);
    if (last === undefined) return;
    const { updatedAt, id } = last;
    try {
      const page = await tl.conversations({ ...optionsOf(filter), limit: 4 * PAGE, before: { updatedAt, id } });
      const now = useList.getState();
      if (now.filter !== filter || !now.hasMore) return;
      const end = now.rows.at(-1);
      isRead = end?.id === id && end.updatedAt === updatedAt;
      if (!isRead) continue;
      useList.setState({ rows: [...now.rows, ...page], hasMore: page.length > 0, known: knownWith(now.known, page) });
    } catch (error) {
      return useList.setState({ error });
    }
  }
}
