import { useSyncExternalStore } from 'react';

/** Whether there is room for a panel beside a conversation. */
export function useIsWide(): boolean {
  return useMedia('(min-width: 74rem)');
}

/** One column: a phone, a narrow window, or a large zoom. */
export function useIsPhone(): boolean {
  return useMedia('(width < 48rem)');
}

/** The preference with the address of the list that a conversation was opened from, on a phone. */
export const LAST_TAB = 'last-tab';

function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = matchMedia(query);
      media.addEventListener('change', listener);
      return () => media.removeEventListener('change', listener);
    },
    () => matchMedia(query).matches,
  );
}

export function isTouch(): boolean {
  return matchMedia('(pointer: coarse)').matches;
}
