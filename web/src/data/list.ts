import { useEffect } from 'react';
import type { Conversation, ConversationState, ThroughlineClient } from 'throughline/client';
import { create } from 'zustand';
import { Newest } from './newest.ts';
import { useClient, useLive } from './session.ts';

/** The conversations of this owner that were read. */
interface ListState {
  readonly phase: 'loading' | 'ready' | 'failed';
  readonly error: unknown;
  /** Most recently changed first. */
  readonly rows: readonly Conversation[];
  /** The last page was not empty: there may be more. */
  readonly hasMore: boolean;
  /** Everything that was read: the most recent ones, and all that are open, pinned or need a person. */
  readonly known: ReadonlyMap<string, Conversation>;
}

export const useList = create<ListState>(() => ({
  phase: 'loading',
  error: null,
  rows: [],
  hasMore: false,
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

/** Reads the conversations that are open, could not be restored or are pinned, however long ago they changed. */
async function readOpen(tl: ThroughlineClient): Promise<void> {
  try {
    const reads = [tl.conversations({ state: OPEN, limit: 200 }), tl.conversations({ pinned: true, limit: 200 })];
    const read = await newest.of('open', Promise.all(reads));
    if (read === null) return;
    const open = read.flat();
    // One that is no longer open or pinned has changed, so it is read with the newest; or it was erased.
    useList.setState(({ known }) => {
      const rest = [...known].filter(([, row]) => !OPEN.includes(row.state) && !row.pinned);
      return { known: knownWith(new Map(rest), open) };
    });
  } catch (error) {
    useList.setState(({ rows }) => ({ phase: rows.length > 0 ? 'ready' : 'failed', error }));
  }
}

/** Reads the newest conversations. `touched`: those that have changed; one that is not found was erased. */
async function readNewest(tl: ThroughlineClient, touched: ReadonlySet<string>): Promise<void> {
  try {
    const read = await newest.of('rows', readWith(tl, touched));
    if (read === null) return;
    useList.setState((before) => {
      const [first, others] = [asKnown(read.first, before.known), read.others];
      const known = knownWith(before.known, [...first, ...others]);
      const found = new Set([...first, ...others].map(({ id }) => id));
      for (const id of touched) if (!found.has(id)) known.delete(id);
      return { phase: 'ready', error: null, known, ...withNewest(before, first, touched, others) };
    });
  } catch (error) {
    useList.setState(({ rows }) => ({ phase: rows.length > 0 ? 'ready' : 'failed', error }));
  }
}

/** The first page, and the touched ones that are not on it: pinning an old conversation does not move it up. */
async function readWith(tl: ThroughlineClient, touched: ReadonlySet<string>) {
  const first = await tl.conversations({ limit: PAGE });
  const listed = new Set(first.map(({ id }) => id));
  const missing = first.length < PAGE ? [] : [...touched].filter((id) => !listed.has(id));
  // One that was erased is not found.
  const others = await Promise.all(missing.map((id) => tl.engine.conversation(id).catch(() => null)));
  return { first, others: others.filter((row) => row !== null) };
}

/**
 * The rows after their first page was read again. Rows are in the order of their last change. So if the new page has a row that has not
 * changed, the older rows below it have not changed either, and stay. Otherwise they are read again when somebody scrolls there.
 * `touched`: those that have changed; `others`: those of them that were found further down.
 */
export function withNewest(
  before: Pick<ListState, 'rows' | 'hasMore'>,
  newest: readonly Conversation[],
  touched: ReadonlySet<string>,
  others: readonly Conversation[] = [],
  page = PAGE,
): Pick<ListState, 'rows' | 'hasMore'> {
  if (newest.length < page) return { rows: newest, hasMore: false };
  const changedAt = new Map(before.rows.map(({ id, updatedAt }) => [id, updatedAt]));
  const joins = newest.some(({ id, updatedAt }) => changedAt.get(id) === updatedAt);
  const end = newest.at(-1);
  if (!joins || end === undefined) return { rows: newest, hasMore: true };
  const fresh = new Set(newest.map(({ id }) => id));
  const kept = before.rows.filter((row) => !fresh.has(row.id) && !touched.has(row.id) && isBelow(row, end));
  const last = before.rows.at(-1);
  // Those that are further down than what was read come with their page.
  const found = others.filter((row) => isBelow(row, end) && !(before.hasMore && last && isBelow(row, last)));
  const older = [...kept, ...found].sort((a, b) => (isBelow(a, b) ? 1 : -1));
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

/** Pins a conversation, puts it away, or undoes this. */
export async function arrange(
  { engine }: ThroughlineClient,
  id: string,
  change: { readonly pinned?: boolean; readonly putAway?: boolean },
): Promise<Conversation> {
  const row = await engine.arrange(id, change);
  useList.setState(({ rows, known }) => ({
    rows: rows.map((each) => (each.id === id ? row : each)),
    known: knownWith(known, [row]),
  }));
  return row;
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
  for (let isRead = false; !isRead; ) {
    const last = useList.getState().rows.at(-1);
    if (last === undefined) return;
    const { updatedAt, id } = last;
    try {
      const page = await tl.conversations({ limit: 4 * PAGE, before: { updatedAt, id } });
      const now = useList.getState();
      if (!now.hasMore) return;
      const end = now.rows.at(-1);
      isRead = end?.id === id && end.updatedAt === updatedAt;
      if (!isRead) continue;
      useList.setState({ rows: [...now.rows, ...page], hasMore: page.length > 0, known: knownWith(now.known, page) });
    } catch (error) {
      return useList.setState({ error });
    }
  }
}
