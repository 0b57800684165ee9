import type { Virtualizer } from '@tanstack/react-virtual';
import { useEffect } from 'react';
import { create } from 'zustand';
import { useConversationStore } from '../data/conversation/use-conversation.ts';

/** The turn that is being read, by conversation. */
const useReading = create<Readonly<Record<string, number>>>(() => ({}));

/** The turn that is being read in the open conversation; null: the timeline is not shown. */
export function useCurrentTurn(): number | null {
  const { id } = useConversationStore();
  return useReading((reading) => reading[id] ?? null);
}

/** How far below its top the screen is read. */
const READ_AT = 0.3;
const AT_END = 48;

/** Keeps the current turn: the one that is read, and at the end the last one. */
export function useCurrent(
  list: Virtualizer<HTMLDivElement, Element>,
  scroller: { readonly current: HTMLDivElement | null },
  last: number,
): void {
  const { id } = useConversationStore();
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const look = () => {
      const { scrollTop, clientHeight, scrollHeight } = element;
      const isAtEnd = scrollHeight - clientHeight - scrollTop <= AT_END;
      const read = list.getVirtualItems().findLast(({ start }) => start <= scrollTop + clientHeight * READ_AT);
      const n = isAtEnd ? last : (read?.index ?? 0) + 1;
      if (useReading.getState()[id] !== n) useReading.setState({ [id]: n });
    };
    look();
    element.addEventListener('scroll', look, { passive: true });
    return () => element.removeEventListener('scroll', look);
  }, [list, scroller, last, id]);
}
