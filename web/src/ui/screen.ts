import { useSyncExternalStore } from 'react';

/** Whether there is room for a panel beside a conversation. */
export function useIsWide(): boolean {
  return useSyncExternalStore(onWidth, () => matchMedia(WIDE).matches);
}

const WIDE = '(min-width: 74rem)';

function onWidth(listener: () => void): () => void {
  const media = matchMedia(WIDE);
  media.addEventListener('change', listener);
  return () => media.removeEventListener('change', listener);
}

export function isTouch(): boolean {
  return matchMedia('(pointer: coarse)').matches;
}
