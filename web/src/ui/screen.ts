import { useCallback, useSyncExternalStore } from 'react';

/** Whether there is room for a panel beside a conversation. */
export function useIsWide(): boolean {
  return useMedia('(min-width: 1100px)');
}

/** Asked for once: a query is parsed again each time. */
const queries = new Map<string, MediaQueryList>();

function mediaOf(query: string): MediaQueryList {
  const media = queries.get(query) ?? matchMedia(query);
  queries.set(query, media);
  return media;
}

function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const media = mediaOf(query);
      media.addEventListener('change', listener);
      return () => media.removeEventListener('change', listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => mediaOf(query).matches);
}

export function isTouch(): boolean {
  return mediaOf('(pointer: coarse)').matches;
}
