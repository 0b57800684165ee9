import { createContext, useContext, useEffect, useMemo, useState } from 'react';
import type { Permission, ThroughlineClient } from 'throughline/client';
import { useStore } from 'zustand';
import type { Live } from '../../live/live.ts';
import { useList } from '../list.ts';
import { useClient, useLive } from '../session.ts';
import type { TurnItem } from './model.ts';
import type { ConversationState } from './state.ts';
import { ConversationStore } from './store.ts';

/** The conversation that a view and everything in it is about. */
export const ConversationContext = createContext<ConversationStore | null>(null);

/** How long the previous conversation stays while the next one is loading. */
const KEPT_MS = 150;
/** How many conversations are kept current after somebody has left them, so that coming back shows them at once. */
const KEPT = 5;

interface Kept {
  readonly tl: ThroughlineClient;
  readonly store: ConversationStore;
  /** Resolves when it can be shown. */
  readonly opened: Promise<void>;
}

/** By id, in the order in which they were opened. */
const kept = new Map<string, Kept>();

/** The conversation with this id. It is opened if needed. Until it can be shown, returns the previous one. */
export function useOpenConversation(id: string): ConversationStore | null {
  const [tl, live] = [useClient(), useLive()];
  const next = useMemo(() => opened(tl, live, id), [tl, live, id]);
  const [shown, setShown] = useState<ConversationStore | null>(null);
  useEffect(() => {
    let isWanted = true;
    const show = () => isWanted && setShown(next.store);
    const timer = setTimeout(show, KEPT_MS);
    void next.opened.then(show);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [next]);
  return next.store.state.getState().phase === 'ready' ? next.store : shown;
}

function opened(tl: ThroughlineClient, live: Live, id: string): Kept {
  const known = kept.get(id);
  kept.delete(id);
  if (known !== undefined && known.tl === tl && known.store.state.getState().phase !== 'failed') {
    kept.set(id, known);
    return known;
  }
  known?.store.close();
  const store = new ConversationStore(tl, live, id);
  const made = { tl, store, opened: store.open(useList.getState().known.get(id)) };
  kept.set(id, made);
  for (const [oldest, { store: left }] of [...kept].slice(0, -KEPT)) {
    left.close();
    kept.delete(oldest);
  }
  return made;
}

export function useConversationStore(): ConversationStore {
  const store = useContext(ConversationContext);
  if (store === null) throw new Error('this component needs a ConversationContext');
  return store;
}

export function useConversation<T>(select: (state: ConversationState) => T): T {
  return useStore(useConversationStore().state, select);
}

export function useTurn(n: number): TurnItem | undefined {
  return useConversation(({ turns }) => turns.get(n));
}

const NONE: readonly Permission[] = [];

/** The questions of a turn that have ended, oldest first. */
export function useDecisions({ id, n }: { readonly id: string; readonly n: number }): readonly Permission[] {
  const { decisions } = useConversationStore();
  useEffect(() => decisions.load(n), [decisions, n]);
  return useStore(decisions.state, (byTurn) => byTurn.get(id) ?? NONE);
}
