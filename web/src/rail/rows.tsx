import { useVirtualizer } from '@tanstack/react-virtual';
import { clsx } from 'clsx';
import { memo, useCallback, useEffect, useRef, useState } from 'react';
import type { Conversation } from 'throughline/client';
import { Link, useRoute } from 'wouter';
import { NO_FILTER, readMore, useList } from '../data/list.ts';
import { isNew, useSeen } from '../data/seen.ts';
import { useClient } from '../data/session.ts';
import { useActions } from '../shell/actions.ts';
import { nameOf, StateMark } from '../ui/state.tsx';
import { Ago, count } from '../ui/time.tsx';

const ROW_PX = 52;

interface RowsProps {
  readonly rows: readonly Conversation[];
  onChosen(): void;
  /** Whether j and k move the cursor. */
  readonly hasKeys: boolean;
}

/** A virtual list: only visible rows are in the page. */
export function Rows({ rows, onChosen, hasKeys }: RowsProps) {
  const tl = useClient();
  const hasMore = useList((state) => state.hasMore);
  const isFiltered = useList(({ filter }) => filter !== NO_FILTER);
  const [, place] = useRoute('/c/:id/*?');
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => rows[index]?.id ?? index,
    overscan: 8,
  });
  const items = virtual.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= rows.length - 10) void readMore(tl);
  }, [tl, hasMore, lastShown, rows]);
  const seen = useSeen();
  const isUnread = (row: Conversation) =>
    seen !== null && row.id !== place?.id && row.state !== 'running' && isNew(seen, row);
  const cursor = useCursor(rows, place?.id ?? null, (index) => virtual.scrollToIndex(index), box);
  useActions(hasKeys ? moves(cursor.move) : []);
  if (rows.length === 0) {
    return (
      <p className="min-h-0 flex-1 px-4 py-3 text-ui text-muted">
        {isFiltered ? 'No conversation matches the filters.' : 'No conversations yet.'}
      </p>
    );
  }
  return (
    <div ref={box} className="min-h-0 flex-1 overflow-y-auto px-2">
      <ul aria-label="Conversations" className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map(({ index, key, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          return (
            <li
              key={key}
              className="absolute inset-x-0"
              style={{ height: ROW_PX, transform: `translateY(${start}px)` }}
            >
              <Row
                row={row}
                isHere={place?.id === row.id}
                isTabStop={cursor.id === row.id}
                isUnread={isUnread(row)}
                onChosen={onChosen}
                onMove={cursor.move}
              />
            </li>
          );
        })}
      </ul>
    </div>
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
  rows: readonly Conversation[],
  openId: string | null,
  scrollTo: (index: number) => void,
  box: React.RefObject<HTMLDivElement | null>,
) {
  const [moved, setMoved] = useState<string | null>(null);
  const wanted = moved ?? openId;
  const at = rows.findIndex(({ id }) => id === wanted);
  const id = rows[Math.max(at, 0)]?.id ?? null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another conversation was opened: the cursor goes there
  useEffect(() => setMoved(null), [openId]);
  const moveNow = (by: number) => {
    const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1);
    const row = rows[next];
    if (row === undefined) return;
    setMoved(row.id);
    scrollTo(next);
    // Scrolling may first have to create the row.
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`a[href="/c/${row.id}"]`)?.focus());
  };
  const latest = useRef(moveNow);
  latest.current = moveNow;
  const move = useCallback((by: number) => latest.current(by), []);
  return { id, move };
}

interface RowProps {
  readonly row: Conversation;
  readonly isHere: boolean;
  readonly isTabStop: boolean;
  readonly isUnread: boolean;
  onChosen(): void;
  onMove(by: number): void;
}

const Row = memo(function Row({ row, isHere, isTabStop, isUnread, onChosen, onMove }: RowProps) {
  const tokens = row.usage.inputTokens + row.usage.outputTokens;
  return (
    <Link
      href={`/c/${row.id}`}
      onClick={onChosen}
      onKeyDown={(event: React.KeyboardEvent) => {
        const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
        if (by === 0) return;
        event.preventDefault();
        onMove(by);
      }}
      tabIndex={isTabStop ? 0 : -1}
      aria-current={isHere ? 'page' : undefined}
      className={clsx(
        'flex h-12.5 flex-col justify-center rounded-md px-2 -outline-offset-2',
        isHere ? 'bg-raised ring-1 ring-line-strong' : 'hover:bg-hover',
      )}
    >
      <span className="flex items-baseline gap-2">
        <span className={clsx('min-w-0 flex-1 truncate text-ui', isUnread && 'font-semibold')}>
          {nameOf(row)}
          {isUnread && <span className="sr-only"> (changed)</span>}
        </span>
        <Ago at={row.updatedAt} className="shrink-0 text-facts text-faint tabular-nums" />
      </span>
      <span className="flex items-center gap-2 text-facts text-faint">
        <StateMark state={row.state} stranded={row.stranded} />
        <span className="min-w-0 flex-1 truncate">{row.lastAgent ?? ''}</span>
        {tokens > 0 && (
          <span className="shrink-0 tabular-nums" title={`${tokens.toLocaleString()} tokens`}>
            {count(tokens)} tok
          </span>
        )}
      </span>
    </Link>
  );
});
