import { useSyncExternalStore } from 'react';

/** Whether there is room for a panel beside a conversation. */
export function useIsWide(): boolean {
  return useMedia('(min-width: 1100px)');
}

function useMedia(query: string): boolean {
  const subscribe = (listener: () => void) => {
    const media = matchMedia(query);
    media.addEventListener('change', listener);
    return () => media.removeEventListener('change', listener);
  };
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
}

export function isTouch(): boolean {
  return matchMedia('(pointer: coarse)').matches;
}
