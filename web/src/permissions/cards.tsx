import { useEffect, useRef, useState } from 'react';
import type { Permission } from 'throughline/client';
import { useClient } from '../data/session.ts';

/** How long the outcome of a question is shown. */
const OUTCOME_MS = 12_000;

/** The questions that were open on this page and have ended, for a while. */
export function useJustEnded(open: readonly Permission[]): readonly Permission[] {
  const tl = useClient();
  const before = useRef<readonly Permission[]>([]);
  const [ended, setEnded] = useState<readonly Permission[]>([]);
  useEffect(() => {
    const gone = before.current.filter(({ id }) => !open.some((one) => one.id === id));
    before.current = open;
    for (const { id } of gone) {
      tl.engine.permission(id).then(
        (permission) => {
          setEnded((known) => [...known.filter((one) => one.id !== id), permission]);
          setTimeout(() => setEnded((known) => known.filter((one) => one.id !== id)), OUTCOME_MS);
        },
        () => {}, // erased with its conversation: it has no outcome
      );
    }
  }, [tl, open]);
  return ended;
}

/** When `key` last changed, in the time of `performance.now()`. */
export function useChangedAt(key: string): number {
  const [last, setLast] = useState({ key, at: 0 });
  if (last.key !== key) setLast({ key, at: performance.now() });
  return last.at;
}
