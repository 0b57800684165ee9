import { useVirtualizer, type VirtualItem, type Virtualizer } from '@tanstack/react-virtual';
import { ArrowDown } from 'lucide-react';
import { memo, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { ConversationStore } from '../data/conversation/store.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { readPreference, writePreference } from '../data/preferences.ts';
import { LossBanner } from '../seams/loss.tsx';
import { RestoringBar, SeamBar } from '../seams/seam-bar.tsx';
import { useSeam } from '../seams/use-seam.ts';
import { useActions } from '../shell/actions.ts';
import { Button } from '../ui/button.tsx';
import { Empty, Skeleton } from '../ui/notes.tsx';
import { useCurrent } from './current.ts';
import { FindBar, useFindRequest } from './find-bar.tsx';
import { NoSuchTurn, type Target, useFramed, useTarget } from './target.tsx';
import { TurnMenu } from './turn-menu.tsx';
import { COLUMN, TurnRow } from './turn-row.tsx';

/** The height in pixels of a turn that has not been measured yet. */
const ESTIMATE = 240;
/** Within this many pixels of the end, the view follows the end. */
const AT_END = 48;
/** The distance in pixels from the top at which a turn that was scrolled to begins. */
const TOP = 16;
/** How many turns before and after the visible ones are loaded. */
const AHEAD = 30;

const FIND = {
  id: 'find',
  title: 'Find in this conversation',
  group: 'Conversation',
  keys: 'Mod+F',
  cli: 'throughline search WORDS',
};
const TO_END = {
  id: 'end',
  title: 'Go to the end',
  group: 'Conversation',
  keys: 'End',
  cli: 'throughline show KEY --last 1',
};
const PROMPTS = [
  { id: 'prompt.previous', title: 'Go to the previous prompt', group: 'Conversation', keys: 'Alt+ArrowUp', step: -1 },
  { id: 'prompt.next', title: 'Go to the next prompt', group: 'Conversation', keys: 'Alt+ArrowDown', step: 1 },
] as const;

/** All turns in order, as a virtual list. */
export function Timeline() {
  const last = useConversation((state) => state.last);
  const phase = useConversation((state) => state.phase);
  // No delay: the previous conversation was shown during the first part of the wait.
  if (phase === 'loading') {
    return (
      <div className="min-h-0 flex-1">
        <Skeleton lines={6} afterMs={0} />
      </div>
    );
  }
  if (last === 0) {
    return (
      <div className="min-h-0 flex-1 overflow-y-auto">
        <Empty title="No turns yet.">
          <p>Write a prompt below. The conversation is stored, even if the agent’s session is lost.</p>
        </Empty>
      </div>
    );
  }
  return <Turns last={last} />;
}

function Turns({ last }: { last: number }) {
  const scroller = useRef<HTMLDivElement>(null);
  const target = useTarget();
  const [isHeld, setHeld] = useState(target !== null);
  // True from the opening of a turn or seam until somebody scrolls: the end is not followed, even if it is visible.
  const isArriving = useRef(target !== null);
  const hasArrived = () => {
    isArriving.current = false;
  };
  const finding = useFindRequest(target);
  const virtualizer = useTurnList(scroller, last, isHeld);
  useEffect(() => {
    if (target === null) return;
    isArriving.current = true;
    setHeld(true);
  }, [target]);
  const toEnd = () => {
    hasArrived();
    virtualizer.scrollToEnd();
  };
  useActions([
    { ...FIND, run: finding.open },
    { ...TO_END, run: toEnd },
  ]);
  usePromptKeys(virtualizer, last, () => {
    hasArrived();
    setHeld(true);
  });
  const isAway = useScrolling(scroller, {
    onEnd: () => !isArriving.current && setHeld(false),
    onResized: (wasAtEnd) => wasAtEnd && !isHeld && toEnd(),
  });
  useOwnPrompts(virtualizer, () => setHeld(false));
  usePlace(virtualizer, scroller, target, last);
  useReadAhead(virtualizer, last);
  useCurrent(virtualizer, scroller, last);
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <Notices target={target} last={last} />
      <div
        ref={scroller}
        className="min-h-0 flex-1 overflow-y-auto [overflow-anchor:none]"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Turns"
        onClickCapture={(event) => opensSomething(event.target) && setHeld(true)}
        onWheel={hasArrived}
        onPointerDown={hasArrived}
        onKeyDown={hasArrived}
      >
        <Rows list={virtualizer} last={last} target={target} />
      </div>
      {finding.request && <FindBar request={finding.request} scroller={scroller} onClose={finding.close} />}
      {isAway && <ToEnd onClick={toEnd} />}
      <TurnMenu />
    </div>
  );
}

/** Above the turns: what the session does not know, and what the address names in vain. */
function Notices({ target, last }: { target: Target; last: number }) {
  return (
    <>
      <LossBanner />
      <NoSuchTurn target={target} last={last} />
    </>
  );
}

/** The heights of turns when a conversation was left. With them, coming back renders it without jumps. */
const measured = new WeakMap<ConversationStore, VirtualItem[]>();

/** The rows near the screen. `isHeld`: the end is not followed. */
function useTurnList(scroller: { readonly current: HTMLDivElement | null }, last: number, isHeld: boolean): List {
  const store = useConversationStore();
  const virtualizer = useVirtualizer<HTMLDivElement, Element>({
    count: last,
    getScrollElement: () => scroller.current,
    estimateSize: () => ESTIMATE,
    getItemKey: (index) => index + 1,
    overscan: 4,
    anchorTo: isHeld ? 'start' : 'end',
    followOnAppend: true,
    scrollEndThreshold: AT_END,
    scrollPaddingStart: TOP,
    initialRect: { width: 800, height: window.innerHeight },
    initialOffset: last * ESTIMATE,
    initialMeasurementsCache: measured.get(store) ?? [],
  });
  useEffect(() => () => void measured.set(store, virtualizer.takeSnapshot()), [store, virtualizer]);
  // When rows above the screen change their height, the visible ones do not move, also while somebody scrolls up.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = ({ key, end, start }, _, { scrollOffset, itemSizeCache }) =>
    itemSizeCache.has(key) ? end <= (scrollOffset ?? 0) : start < (scrollOffset ?? 0);
  return virtualizer;
}

/** After somebody has opened something, the end is not followed until they scroll there. */
function opensSomething(target: EventTarget): boolean {
  return target instanceof Element && target.closest('[aria-expanded], summary, [data-opens]') !== null;
}

type List = Virtualizer<HTMLDivElement, Element>;

interface RowProps {
  readonly n: number;
  readonly isLast: boolean;
  readonly start: number;
  readonly target: Target;
  readonly list: List;
}

function Rows({ list, last, target: asked }: { list: List; last: number; target: Target }) {
  const target = useFramed(asked);
  return (
    <div className="relative w-full" style={{ height: list.getTotalSize() }}>
      {list.getVirtualItems().map(({ key, index, start }) => (
        <Row key={key} n={index + 1} isLast={index + 1 === last} start={start} target={target} list={list} />
      ))}
    </div>
  );
}

/** Memoized: the growth of the last turn does not render the other rows. */
const Row = memo(function Row({ n, isLast, start, target, list }: RowProps) {
  const isLoaded = useConversation(({ turns }) => turns.has(n));
  return (
    <div
      // A turn that is not loaded has only an estimated height. Measuring it would move the rows below when it is loaded.
      ref={isLoaded ? list.measureElement : undefined}
      data-index={n - 1}
      data-turn={n}
      className="absolute top-0 left-0 w-full"
      style={{ transform: `translateY(${start}px)` }}
    >
      {n === 1 && <div className="h-5" />}
      <TurnRow n={n} target={target} />
      {isLast && <Tail n={n + 1} target={target} />}
    </div>
  );
});

/** After the last turn: the restore of a warm-up, before the next prompt. */
function Tail({ n, target }: { n: number; target: Target }) {
  const warming = useConversation((state) => state.warming);
  const seam = useSeam(n);
  if (warming === null && seam === null) return null;
  const isTarget = target?.kind === 'seam' && target.n === n;
  return (
    <div className={COLUMN}>
      {warming !== null ? (
        <RestoringBar restoring={warming} n={n} turn={null} />
      ) : (
        seam && <SeamBar seam={seam} n={n} isTarget={isTarget} />
      )}
    </div>
  );
}

/** Scrolls to a prompt before or after the one at the top of the screen. */
function goToPrompt(list: List, step: number, last: number): void {
  const top = list.scrollOffset ?? 0;
  const first = list.getVirtualItems().find(({ end }) => end > top + TOP);
  if (first === undefined) return;
  // The beginning of a turn that is read comes before the turn before it.
  const isInside = top + TOP - first.start > TOP;
  const index = first.index + (step < 0 && isInside ? 0 : step);
  if (index >= last) list.scrollToEnd();
  else list.scrollToIndex(Math.max(0, index), { align: 'start' });
}

/** Keys that go from prompt to prompt. `onGo`: the end is not followed then. */
function usePromptKeys(list: List, last: number, onGo: () => void): void {
  useActions(
    PROMPTS.map(({ step, ...action }) => ({
      ...action,
      run: () => {
        onGo();
        goToPrompt(list, step, last);
      },
    })),
  );
}

/** Scrolls to the turn of the address, or to where somebody stopped reading, or to the end. Stores the position in this browser. */
function usePlace(
  list: List,
  scroller: { readonly current: HTMLDivElement | null },
  target: Target,
  last: number,
): void {
  const store = useConversationStore();
  const isPlaced = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another address scrolls
  useLayoutEffect(() => {
    const kept = isPlaced.current ? null : readPlace(store.id);
    isPlaced.current = true;
    const place = target === null ? kept : { n: target.n, past: 0 };
    if (place === null && target === null) list.scrollToEnd();
    if (place === null) return;
    const n = Math.min(place.n, last);
    const go = () => {
      // The seam after the last turn is at its end.
      list.scrollToIndex(n - 1, { align: place.n > last ? 'end' : 'start' });
      // The heights above are known now.
      if (place.past !== 0) requestAnimationFrame(() => list.scrollBy(place.past));
    };
    store.load(n - 5, n + 10).then(go, go);
  }, [target]);
  useEffect(() => {
    const element = scroller.current;
    const keep = debounced(() => element && keepPlace(store.id, list, element));
    element?.addEventListener('scroll', keep, { passive: true });
    return () => element?.removeEventListener('scroll', keep);
  }, [store, list, scroller]);
}

function keepPlace(id: string, list: List, element: HTMLElement): void {
  const { scrollTop } = element;
  const isAtEnd = element.scrollHeight - element.clientHeight - scrollTop <= AT_END;
  const first = list.getVirtualItems().find(({ end }) => end > scrollTop + TOP);
  if (isAtEnd || first === undefined) writePreference(`place.${id}`, null);
  else
    writePreference(
      `place.${id}`,
      JSON.stringify({ n: first.index + 1, past: Math.round(scrollTop + TOP - first.start) }),
    );
}

/** Null: at the end. */
function readPlace(id: string): { readonly n: number; readonly past: number } | null {
  const [n, past] = (readPreference(`place.${id}`)?.match(/-?\d+/g) ?? []).map(Number);
  return n === undefined || past === undefined ? null : { n, past };
}

function debounced(work: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(work, 200);
  };
}

function useReadAhead(virtualizer: List, last: number): void {
  const store = useConversationStore();
  const { startIndex, endIndex } = virtualizer.range ?? {};
  useEffect(() => {
    // Before the first layout there is no range.
    if (startIndex === undefined || endIndex === undefined) return;
    // Scrolling tries again after a failure. The connection strip shows the reason.
    store.load(Math.max(1, startIndex + 1 - AHEAD), Math.min(last, endIndex + 1 + AHEAD)).catch(() => {});
  }, [store, startIndex, endIndex, last]);
}

interface Scrolling {
  /** The view has reached the end. */
  onEnd(): void;
  /** The height of the view changed (a question, the queue or the first steps appeared), or measured turns moved the end out of view. */
  onResized(wasAtEnd: boolean): void;
}

/** Whether the end is far out of view. */
function useScrolling(scroller: { readonly current: HTMLDivElement | null }, scrolling: Scrolling): boolean {
  const [isAway, setAway] = useState(false);
  const latest = useRef(scrolling);
  latest.current = scrolling;
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const leftBelow = () => element.scrollHeight - element.clientHeight - element.scrollTop;
    let isAtEnd = leftBelow() <= AT_END;
    let height = element.clientHeight;
    const look = () => {
      const left = leftBelow();
      isAtEnd = left <= AT_END;
      setAway(left > AT_END * 4);
      if (isAtEnd) latest.current.onEnd();
    };
    const sizes = new ResizeObserver(() => {
      const isEndLost = isAtEnd && leftBelow() > AT_END;
      if (element.clientHeight === height && !isEndLost) return;
      height = element.clientHeight;
      latest.current.onResized(isAtEnd);
    });
    element.addEventListener('scroll', look, { passive: true });
    sizes.observe(element);
    if (element.firstElementChild !== null) sizes.observe(element.firstElementChild);
    return () => {
      element.removeEventListener('scroll', look);
      sizes.disconnect();
    };
  }, [scroller]);
  return isAway;
}

/** After a prompt was sent from this page, scrolls to its answer. */
function useOwnPrompts(list: List, onSent: () => void): void {
  const sends = useConversation((state) => state.sends);
  const seen = useRef(sends);
  const latest = useRef(onSent);
  latest.current = onSent;
  useEffect(() => {
    if (seen.current === sends) return;
    seen.current = sends;
    latest.current();
    list.scrollToEnd();
  }, [list, sends]);
}

function ToEnd({ onClick }: { onClick(): void }) {
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-3 flex justify-center">
      <Button small className="pointer-events-auto bg-raised shadow-md" onClick={onClick}>
        <ArrowDown size={14} aria-hidden />
        Go to the end
      </Button>
    </div>
  );
}
