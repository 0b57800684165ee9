import { useVirtualizer } from '@tanstack/react-virtual';
import { clsx } from 'clsx';
import { Archive, ChevronDown, ChevronRight, GitBranch, Pin, PinOff } from 'lucide-react';
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { Conversation } from 'throughline/client';
import { Link, useLocation, useRoute } from 'wouter';
import { arrange, readMore, useList } from '../data/list.ts';
import { usePreference } from '../data/preferences.ts';
import { isNew, useSeen } from '../data/seen.ts';
import { useClient, useMay } from '../data/session.ts';
import { useTasks } from '../data/tasks.ts';
import { useForYou } from '../for-you/use-for-you.ts';
import { useActions } from '../shell/actions.ts';
import { IconButton } from '../ui/button.tsx';
import { say, sayError } from '../ui/say.ts';
import { isTouch } from '../ui/screen.ts';
import { Glyph, nameOf } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { itemsOf, type RailItem, type RailRow } from './items.ts';

const FOLDED = 'rail.folded';

/** What the rail shows now, and a function that folds and unfolds a project. */
function useItems(): readonly [readonly RailItem[], (path: string) => void] {
  const { rows, known } = useList();
  const { needs } = useForYou();
  const { tasks } = useTasks();
  const [path] = useLocation();
  const [, place] = useRoute('/c/:id/*?');
  const openId = place?.id;
  const seen = useSeen();
  const [kept, keep] = usePreference(FOLDED);
  const folded = useMemo(() => new Set(kept?.split('\n').filter(Boolean)), [kept]);
  // On this view, the same is beside it, with more.
  const showsNeeds = path !== '/';
  const items = useMemo(() => {
    const isUnread = (row: Conversation) => seen !== null && row.id !== openId && row.open === 0 && isNew(seen, row);
    return itemsOf({ rows, known, needs, tasks, showsNeeds, folded, isUnread });
  }, [rows, known, needs, tasks, showsNeeds, folded, seen, openId]);
  const fold = (project: string) => {
    const paths = folded.has(project) ? [...folded].filter((each) => each !== project) : [...folded, project];
    keep(paths.length === 0 ? null : paths.join('\n'));
  };
  return [items, fold];
}

/** The height of a line in pixels. It follows the font size of the browser. */
function heightOf(item: RailItem | undefined, rem: number): number {
  const touches = isTouch();
  if (item?.kind === 'heading') return touches ? 50 : rem + 20;
  const hasNews = item?.news != null;
  if (touches) return hasNews ? 2.25 * rem + 18 : Math.max(44, 1.5 * rem + 18);
  return (hasNews ? 2.25 : 1.25) * rem + 8;
}

/** A virtual list: only visible rows are in the page. `hasKeys`: whether j and k move the cursor. */
export function Rows({ hasKeys }: { hasKeys: boolean }) {
  const tl = useClient();
  const [items, fold] = useItems();
  const hasMore = useList((state) => state.hasMore);
  const [path] = useLocation();
  const [, place] = useRoute('/c/:id/*?');
  const box = useRef<HTMLDivElement>(null);
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => heightOf(items[index], rem),
    getItemKey: (index) => items[index]?.key ?? index,
    overscan: 8,
  });
  // A line that stays may get or lose its second line.
  const shape = items.map((item) => (item.kind === 'heading' ? 2 : item.news === null ? 0 : 1)).join('');
  // biome-ignore lint/correctness/useExhaustiveDependencies: the heights depend on it
  useLayoutEffect(() => virtual.measure(), [shape, rem]);
  useAnchor(box, items, rem);
  const shown = virtual.getVirtualItems();
  const lastShown = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= items.length - 10) void readMore(tl);
  }, [tl, hasMore, lastShown, items]);
  const cursor = useCursor(items, place?.id ?? null, (index) => virtual.scrollToIndex(index), box);
  // On this view, the keys move in its own list.
  useActions(hasKeys && path !== '/' ? moves(cursor.move) : []);
  if (items.length === 0) return <p className="min-h-0 flex-1 px-4 py-3 text-muted">No conversations yet.</p>;
  return (
    <div ref={box} className="min-h-0 flex-1 overflow-y-auto px-2">
      <ul aria-label="Conversations" className="relative" style={{ height: virtual.getTotalSize() }}>
        {shown.map(({ index, key, start, size }) => {
          const item = items[index];
          if (item === undefined) return null;
          return (
            <li key={key} className="absolute inset-x-0" style={{ height: size, transform: `translateY(${start}px)` }}>
              {item.kind === 'heading' ? (
                <Heading item={item} onFold={fold} />
              ) : (
                <Row
                  {...item}
                  isHere={place?.id === item.conversation?.id || path === item.href}
                  isTabStop={cursor.key === item.key}
                  onMove={cursor.move}
                />
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** What somebody has scrolled to stays where it is when lines above it come or go. */
function useAnchor(box: React.RefObject<HTMLDivElement | null>, items: readonly RailItem[], rem: number): void {
  const before = useRef(items);
  useLayoutEffect(() => {
    const [list, old] = [box.current, before.current];
    before.current = items;
    if (list === null || old === items || list.scrollTop === 0) return;
    const startsOf = (lines: readonly RailItem[]) => {
      let start = 0;
      return new Map(
        lines.map((item) => {
          const place = [item.key, start] as const;
          start += heightOf(item, rem);
          return place;
        }),
      );
    };
    const [was, is] = [startsOf(old), startsOf(items)];
    const top = [...was].find(([key, start]) => start >= list.scrollTop && is.has(key));
    if (top !== undefined) list.scrollTop += (is.get(top[0]) ?? top[1]) - top[1];
  }, [box, items, rem]);
}

function Heading({
  item: { project, isFolded },
  onFold,
}: {
  item: RailItem & { kind: 'heading' };
  onFold(path: string): void;
}) {
  if (project === null)
    return <p className="flex h-full items-end px-2 pb-1 text-facts font-semibold text-look">Needs you</p>;
  const { name, at, path } = project;
  const Chevron = isFolded ? ChevronRight : ChevronDown;
  return (
    <button
      type="button"
      aria-expanded={!isFolded}
      title={path}
      onClick={() => onFold(path)}
      className="flex h-full w-full items-end gap-1.5 rounded-md px-2 pb-1 text-left text-facts -outline-offset-2"
    >
      <Chevron size={12} aria-hidden className="mb-0.5 shrink-0 text-faint" />
      <span className="min-w-0 shrink-0 truncate font-semibold text-muted">{name}</span>
      <span className="ml-auto min-w-0 truncate font-mono text-faint max-md:hidden">{at}</span>
    </button>
  );
}

function moves(move: (by: number) => void) {
  const group = 'Conversations';
  return [
    { id: 'rail.next', title: 'Next conversation in the list', group, keys: 'j', run: () => move(1) },
    { id: 'rail.previous', title: 'Previous conversation in the list', group, keys: 'k', run: () => move(-1) },
  ];
}

/** The row that keys have moved to; otherwise the open conversation. It gets the focus, and Enter opens it like any link. */
function useCursor(
  items: readonly RailItem[],
  openId: string | null,
  scrollTo: (index: number) => void,
  box: React.RefObject<HTMLDivElement | null>,
) {
  const [moved, setMoved] = useState<string | null>(null);
  const rows = items.filter((item) => item.kind === 'row');
  const wanted = moved ?? openId;
  const at = rows.findIndex(({ key }) => key === wanted);
  const key = rows[Math.max(at, 0)]?.key ?? null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another conversation was opened: the cursor goes there
  useEffect(() => setMoved(null), [openId]);
  const moveNow = (by: number) => {
    const row = rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (row === undefined) return;
    setMoved(row.key);
    scrollTo(items.indexOf(row));
    // Scrolling may first have to create the row.
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`a[href="${row.href}"]`)?.focus());
  };
  const latest = useRef(moveNow);
  latest.current = moveNow;
  const move = useCallback((by: number) => latest.current(by), []);
  return { key, move };
}

interface RowProps extends Omit<RailRow, 'key'> {
  readonly isHere: boolean;
  readonly isTabStop: boolean;
  onMove(by: number): void;
}

const Row = memo(function Row(row: RowProps) {
  const { conversation, isHere, onMove } = row;
  const may = useMay('prompt');
  const { pin, putAway } = useArranging(conversation);
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => onMove(1),
    ArrowUp: () => onMove(-1),
    ...(may && conversation !== null && { p: pin, e: putAway }),
  };
  return (
    <div className="group/row relative h-full">
      <RowLink {...row} keys={keys} />
      {may && conversation !== null && (
        // The keys of the row do the same.
        <span
          className={clsx(
            'absolute inset-y-0 right-1 flex items-center rounded-md opacity-0 group-hover/row:opacity-100 pointer-coarse:hidden',
            isHere ? 'bg-raised' : 'bg-hover',
          )}
        >
          <IconButton label={conversation.pinned ? 'Unpin' : 'Pin'} keys="p" small tabIndex={-1} onClick={pin}>
            {conversation.pinned ? <PinOff size={13} /> : <Pin size={13} />}
          </IconButton>
          <IconButton label="Put away" keys="e" small tabIndex={-1} onClick={putAway}>
            <Archive size={13} />
          </IconButton>
        </span>
      )}
    </div>
  );
});

function useArranging(conversation: Conversation | null) {
  const tl = useClient();
  const change = (what: Parameters<typeof arrange>[2], done?: string) => {
    if (conversation === null) return;
    arrange(tl, conversation.id, what).then(() => done && say(done), sayError);
  };
  const name = conversation === null ? '' : nameOf(conversation);
  return {
    pin: () => change({ pinned: !conversation?.pinned }),
    putAway: () => change({ putAway: true }, `“${name}” is put away. Its next prompt brings it back.`),
  };
}

interface RowLinkProps extends RowProps {
  /** What keys do while the row has the focus. */
  readonly keys: Readonly<Record<string, () => void>>;
}

function RowLink(row: RowLinkProps) {
  const { href, title, branch, glyph, word, isNew: isUnread, isPinned, news, at, isHere, isTabStop, keys } = row;
  return (
    <Link
      href={href}
      onKeyDown={(event: React.KeyboardEvent) => {
        const run = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
        if (run === undefined) return;
        event.preventDefault();
        run();
      }}
      tabIndex={isTabStop ? 0 : -1}
      aria-current={isHere ? 'page' : undefined}
      className={clsx(
        'relative grid h-full grid-cols-[0.875rem_minmax(0,1fr)_auto] content-center items-center gap-x-2 rounded-md px-2 -outline-offset-2 pointer-coarse:px-3',
        isHere
          ? 'bg-raised ring-1 ring-line-strong before:absolute before:inset-y-1 before:-left-2 before:border-l-3 before:border-accent forced-colors:outline-2'
          : 'hover:bg-hover',
      )}
    >
      {glyph === null ? <span /> : <Glyph name={glyph} label={word} />}
      <span className="flex min-w-0 items-center gap-1 pointer-coarse:text-said">
        <span className={clsx('min-w-0 truncate', look(isHere, isUnread, glyph !== null))}>{title}</span>
        {branch !== null && <Branch words={branch} />}
        {isPinned && <Pin size={11} aria-label="Pinned" className="shrink-0 text-faint" />}
      </span>
      <Ago at={at} className="text-facts text-faint tabular-nums" />
      {news !== null && <span className="col-span-2 col-start-2 truncate text-facts text-muted">{news}</span>}
    </Link>
  );
}

function look(isHere: boolean, isUnread: boolean, hasGlyph: boolean): string {
  if (isHere || isUnread) return 'font-semibold text-ink';
  return hasGlyph ? 'text-ink' : 'text-muted';
}

/** Beside a title that another conversation has, too. */
function Branch({ words }: { words: string }) {
  return (
    <span className="flex shrink-0 items-center text-facts text-faint" title={words}>
      <GitBranch size={12} aria-hidden />
      <span className="sr-only">({words})</span>
      <span aria-hidden>{words.replace(/^\D+/, '')}</span>
    </span>
  );
}
