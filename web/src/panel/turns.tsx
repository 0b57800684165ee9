import { useVirtualizer } from '@tanstack/react-virtual';
import { clsx } from 'clsx';
import { ChevronRight } from 'lucide-react';
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { Turn } from 'throughline/client';
import { useLocation } from 'wouter';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import { endedIn } from '../data/conversation/reads.ts';
import type { ConversationState } from '../data/conversation/state.ts';
import { useConversation, useConversationStore, useTurn } from '../data/conversation/use-conversation.ts';
import { wordsIn } from '../data/drafts/prompt.ts';
import { laneOf, lineTurnOf, shadeOf } from '../seams/line.ts';
import { BRIEFLY, turnsText } from '../seams/seam.ts';
import { receiptsFor } from '../seams/strands.ts';
import { useSeam } from '../seams/use-seam.ts';
import { useCurrentTurn } from '../timeline/current.ts';
import { Empty, ErrorNote, Skeleton } from '../ui/notes.tsx';
import { isTouch } from '../ui/screen.ts';
import { itemsOf, type OutlineItem, type OutlineTurn } from './outline-items.ts';

/** The heights in pixels of a turn and of a seam. */
const HEIGHTS = isTouch() ? { turn: 44, seam: 44 } : { turn: 28, seam: 26 };
/** So many turns are shown at first, and the earlier ones are folded if they are more than a few. */
const SHOWN = 20;
const FEW = 6;

/** The prompts of the conversation along its line. A click goes to the turn. */
export function Turns() {
  const outline = useConversation((state) => state.outline);
  const error = useConversation((state) => state.outlineError);
  const last = useConversation((state) => state.last);
  // After a switch the conversation is painted first.
  const isPainted = useDeferredValue(true, false);
  if (outline === null) return error === null ? <Skeleton lines={8} /> : <ErrorNote error={error} />;
  if (!isPainted) return null;
  if (last === 0) return <Empty title="No turns yet." />;
  return <List />;
}

function List() {
  const items = useItems();
  const current = useCurrentTurn();
  const last = items.at(-1)?.n ?? 0;
  const [isFolded, setFolded] = useState(true);
  const from = isFolded && last > SHOWN + FEW ? last - SHOWN + 1 : 1;
  const shown = useMemo(() => items.filter(({ n }) => n >= from), [items, from]);
  useEffect(() => {
    if (current !== null && current < from) setFolded(false);
  }, [current, from]);
  return (
    <div className="flex h-full flex-col">
      {from > 1 && (
        <button
          type="button"
          aria-expanded={false}
          onClick={() => setFolded(false)}
          className="relative flex min-h-7 shrink-0 items-center gap-1.5 pl-9 text-facts text-faint hover:text-ink pointer-coarse:min-h-11"
        >
          <span
            className="absolute inset-y-0 left-3.5 border-l-2 border-dashed"
            style={{ borderColor: shadeOf(shown[0]?.above ?? null) }}
            aria-hidden
          />
          <ChevronRight size={12} aria-hidden />
          {(from - 1).toLocaleString('en')} earlier turns
        </button>
      )}
      <Rows items={shown} current={current} />
      <Foot strands={items.at(-1)?.strand ?? 0} />
    </div>
  );
}

function Rows({ items, current }: { items: readonly OutlineItem[]; current: number | null }) {
  const scroller = useRef<HTMLDivElement>(null);
  const store = useConversationStore();
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => HEIGHTS[items[index]?.kind ?? 'turn'],
    getItemKey: (index) => `${items[index]?.kind} ${items[index]?.n}`,
    overscan: 10,
    initialOffset: Number.MAX_SAFE_INTEGER,
    initialRect: { width: 236, height: 600 },
  });
  const index = current === null ? -1 : items.findIndex(({ kind, n }) => kind === 'turn' && n === current);
  useEffect(() => {
    if (index >= 0) virtual.scrollToIndex(index, { align: 'auto' });
  }, [virtual, index]);
  const [first, last] = [virtual.getVirtualItems().at(0), virtual.getVirtualItems().at(-1)];
  const [from, to] = [items[first?.index ?? -1]?.n, items[last?.index ?? -1]?.n];
  useEffect(() => {
    // Scrolling tries again. Without its prompt a turn has only its number.
    if (from !== undefined && to !== undefined) store.load(from, to).catch(() => {});
  }, [store, from, to]);
  return (
    <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto">
      <ol className="relative" style={{ height: virtual.getTotalSize() }} aria-label="Prompts">
        {virtual.getVirtualItems().map(({ index: at, start, size, key }) => {
          const item = items[at];
          return (
            item && (
              <li key={key} className="absolute inset-x-0" style={{ top: start, height: size }}>
                {item.kind === 'turn' ? (
                  <TurnItem item={item} isCurrent={item.n === current} />
                ) : (
                  <SeamItem item={item} />
                )}
              </li>
            )
          );
        })}
      </ol>
    </div>
  );
}

const LANES = { left: 15, right: 21 } as const;

function TurnItem({ item: { n, strand, isUnsent }, isCurrent }: { item: OutlineItem; isCurrent: boolean }) {
  const [, go] = useLocation();
  const turn = useTurn(n)?.turn;
  const x = LANES[laneOf(strand)];
  const shade = shadeOf(strand);
  return (
    <button
      type="button"
      aria-current={isCurrent}
      onClick={() => go(`/turn/${n}`, { state: Date.now() })}
      className={clsx(
        'thread-row flex h-full w-full items-center gap-1.5 pr-3 text-left text-ui hover:bg-hover hover:text-ink',
        isCurrent ? 'bg-hover font-semibold text-ink' : 'text-muted',
      )}
    >
      <svg
        width={30}
        height="100%"
        className="shrink-0 overflow-visible"
        fill="none"
        strokeWidth={2}
        aria-hidden="true"
      >
        {!isUnsent && <line x1={x} x2={x} y1={n === 1 ? '50%' : 0} y2="100%" stroke={shade} />}
        <circle
          cx={x}
          cy="50%"
          r={2.6}
          stroke={isUnsent ? 'var(--color-control)' : shade}
          fill={isCurrent && !isUnsent ? shade : 'var(--color-canvas)'}
        />
      </svg>
      <span className="min-w-0 flex-1 truncate" dir="auto">
        {turn === undefined ? <span className="text-faint">…</span> : firstLine(turn)}
      </span>
      <span className="text-facts font-normal text-faint tabular-nums">
        <span className="sr-only">, turn </span>
        {n}
      </span>
    </button>
  );
}

/** More of a prompt does not fit. */
const LONGEST = 120;

function firstLine({ prompt }: Pick<Turn, 'prompt'>): string {
  const [line = ''] = wordsIn(prompt).trim().split('\n', 1);
  return line === '' ? 'A prompt without text' : line.slice(0, LONGEST);
}

function SeamItem({ item: { n, above, strand, how } }: { item: OutlineItem }) {
  const [, go] = useLocation();
  const seam = useSeam(n);
  return (
    <button
      type="button"
      aria-label={`Seam before turn ${n}: ${seam?.brief ?? BRIEFLY[how]}`}
      onClick={() => go(`/seam/${n}`, { state: Date.now() })}
      className="flex h-full w-full items-center gap-1.5 pr-3 text-left text-facts text-faint hover:text-ink"
    >
      <SmallStitch above={above} strand={strand} />
      <span className={clsx('min-w-0 flex-1 truncate', seam?.loss && 'text-look')}>{seam?.brief ?? BRIEFLY[how]}</span>
    </button>
  );
}

function SmallStitch({ above, strand }: { above: number; strand: number }) {
  const mirror = laneOf(above) === 'right' ? 'matrix(-1 0 0 1 36 0)' : undefined;
  return (
    <svg
      width={30}
      height={26}
      className="shrink-0 self-stretch overflow-visible"
      viewBox="0 0 30 26"
      preserveAspectRatio="none"
      fill="none"
      strokeWidth={2}
      aria-hidden="true"
    >
      <g transform={mirror}>
        {above === strand ? (
          <>
            <path d="M15 0V26" stroke={shadeOf(strand)} />
            <path d="M9 13h3M18 13h3" stroke="var(--color-control)" />
          </>
        ) : (
          <>
            <path d="M15 0V4C15 9 16.5 11 18 13" stroke={shadeOf(above)} />
            <path d="M18 13C19.5 15 21 17 21 22V26" stroke={shadeOf(strand)} />
          </>
        )}
      </g>
    </svg>
  );
}

/** What holds for the whole line. */
function Foot({ strands }: { strands: number }) {
  const receipts = useConversation((state) => state.receipts);
  const latest = useMemo(() => {
    const ns = [...receipts.keys()].toSorted((a, b) => b - a);
    return ns.flatMap((n) => (receipts.get(n) ?? []).toReversed()).find(({ rung }) => rung !== 'none');
  }, [receipts]);
  if (strands === 0) return null;
  return (
    <div className="shrink-0 border-t border-line py-2.5 pr-3 pl-9 text-ui tabular-nums">
      <p className="font-semibold">{strands === 1 ? 'One session' : `${strands} sessions, one line`}</p>
      {latest !== undefined && (
        <p className={clsx(latest.dropped > 0 ? 'text-look' : 'text-muted')}>
          {latest.condensed > 0 && `${latest.condensed.toLocaleString('en')} in short form, `}
          {latest.dropped === 0 ? '0 dropped' : `${turnsText(latest.dropped)} dropped`}
        </p>
      )}
    </div>
  );
}

/** All rows. Those of turns that have ended are computed once for each outline. */
function useItems(): readonly OutlineItem[] {
  const outline = useConversation((state) => state.outline);
  const open = useConversation(openTurns);
  const forkedAt = useConversation(({ conversation }) => conversation?.parent?.n ?? null);
  return useMemo(() => {
    const ended = endedIn(outline ?? []).map((turn) => {
      const isUnsent = turn.rung === null && !turn.imported;
      return { ...turn, isUnsent, isOut: isUnsent && turn.state === 'cancelled' };
    });
    return itemsOf([...ended, ...(JSON.parse(open) as OutlineTurn[])], forkedAt);
  }, [outline, open, forkedAt]);
}

/** The turns that the outline does not have yet, or not to their end. As text, which is compared by its value: a stream does not change it. */
function openTurns(state: ConversationState): string {
  const after = endedIn(state.outline ?? []).length;
  const turns: OutlineTurn[] = [];
  for (let n = after + 1; n <= state.last; n += 1) {
    const turn = state.turns.get(n)?.turn;
    if (turn === undefined) continue;
    const isOut = turn.state === 'queued' || (turn.sent === null && turn.state === 'cancelled');
    const isUnsent = turn.sent === null && !turn.imported && hasEnded(turn.state);
    turns.push({ ...lineTurnOf(turn, receiptsFor(state, n)), isOut, isUnsent });
  }
  return JSON.stringify(turns);
}
