import { useState } from 'react';

/** When `key` last changed, in the time of `performance.now()`. */
export function useChangedAt(key: string): number {
  const [last, setLast] = useState({ key, at: 0 });
  if (last.key !== key) setLast({ key, at: performance.now() });
  return last.at;
}
