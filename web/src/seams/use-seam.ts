import { useEffect, useMemo } from 'react';
import type { Receipt, Turn } from 'throughline/client';
import { create } from 'zustand';
import { useConversation, useConversationStore, useTurn } from '../data/conversation/use-conversation.ts';
import { useList } from '../data/list.ts';
import { type Seam, seamOf } from './seam.ts';

const NONE: readonly Receipt[] = [];

/** The seam before turn `n`, or after the last turn if `n` is one more than its number. Null: there is none. */
export function useSeam(n: number): Seam | null {
  const turn = useTurn(n)?.turn ?? null;
  const previous = usePrevious(n);
  const own = useConversation(({ receipts }) => receipts.get(n)) ?? NONE;
  const before = useConversation(({ receipts }) => receipts.get(n - 1)) ?? NONE;
  const parent = useConversation(({ conversation }) => conversation?.parent ?? null);
  const title = useList(({ known }) => known.get(parent?.conversationId ?? '')?.title || null);
  const ended = useConversation(({ endings }) => endings.get(n) ?? null);
  return useMemo(() => {
    const warmUps = before.filter((receipt) => receipt.turn === null);
    const receipts = [...warmUps, ...own.filter((receipt) => receipt.turn !== null)];
    const fork = parent?.n === n - 1 ? { n: parent.n, title } : null;
    return seamOf({ n, turn, previous, receipts, ended, fork });
  }, [turn, previous, own, before, parent, title, ended, n]);
}

/** Reads why the session before the seam had ended. */
export function useEnding(n: number, seam: Seam): void {
  const store = useConversationStore();
  const isWanted = seam.receipt !== null && seam.receipt.rung !== 'none';
  useEffect(() => {
    // If that fails, the seam shows a more general cause.
    if (isWanted) store.readEnding(n).catch(() => {});
  }, [store, n, isWanted]);
}

/** How many turns back the previous turn of the history is searched. */
const LOOK_BACK = 20;

/** The last turn before turn `n` that was sent or imported. */
function usePrevious(n: number): Turn | null {
  return useConversation(({ turns }) => {
    for (let at = n - 1; at > Math.max(0, n - LOOK_BACK); at -= 1) {
      const turn = turns.get(at)?.turn;
      if (turn === undefined) return null;
      if (turn.sent !== null || turn.imported) return turn;
    }
    return null;
  });
}

/** By conversation and turn: whether somebody has opened or closed the seam. */
const useChosen = create<{ readonly chosen: ReadonlyMap<string, boolean> }>(() => ({ chosen: new Map() }));

/**
 * Whether a seam is open, and a function that changes it. This is not the state of a component: the seam after the last turn is rendered
 * elsewhere when the next turn arrives, and a row that leaves the screen is not rendered at all.
 */
export function useOpened(n: number, isTarget: boolean): readonly [boolean, (isOpen: boolean) => void] {
  const name = `${useConversationStore().id} ${n}`;
  const isOpen = useChosen(({ chosen }) => chosen.get(name)) ?? isTarget;
  const open = (to: boolean) => useChosen.setState(({ chosen }) => ({ chosen: new Map(chosen).set(name, to) }));
  return [isOpen, open];
}
