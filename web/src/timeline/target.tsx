import { useEffect, useRef, useState } from 'react';
import { Link, useRoute } from 'wouter';
import { useHistoryState } from 'wouter/use-browser-location';

/** A turn or a seam that the address names. */
export type Target = { readonly kind: 'turn' | 'seam'; readonly n: number } | null;

/** The turn or seam that the address names. */
export function useTarget(): Target {
  const [isTurn, turn] = useRoute('/turn/:n');
  const [isSeam, seam] = useRoute('/seam/:n');
  const n = Number((isTurn ? turn?.n : seam?.n) ?? Number.NaN);
  const kind = isTurn ? 'turn' : 'seam';
  // A link that is followed again leads there again.
  const asked = useHistoryState<unknown>();
  const known = useRef<Target>(null);
  const askedBefore = useRef(asked);
  const next = (isTurn || isSeam) && Number.isInteger(n) && n > 0 ? ({ kind, n } as const) : null;
  const isOther = known.current?.kind !== next?.kind || known.current?.n !== next?.n;
  if (isOther || askedBefore.current !== asked) known.current = next;
  askedBefore.current = asked;
  return known.current;
}

/** How long a turn that was opened by its address has a frame. */
const FRAMED_MS = 4_000;

/** The target without its frame, once somebody has done something or a few seconds have passed. */
export function useFramed(target: Target): Target {
  const [seen, setSeen] = useState<Target>(null);
  useEffect(() => {
    if (target === null) return;
    const done = () => setSeen(target);
    const timer = setTimeout(done, FRAMED_MS);
    const actions = ['pointerdown', 'keydown', 'wheel'] as const;
    for (const action of actions) window.addEventListener(action, done, { passive: true });
    return () => {
      clearTimeout(timer);
      for (const action of actions) window.removeEventListener(action, done);
    };
  }, [target]);
  // A seam stays the target: it is open, and has no frame.
  return target !== null && target === seen && target.kind === 'turn' ? null : target;
}

/** Says that the address names a turn that is not there. */
export function NoSuchTurn({ target, last }: { target: Target; last: number }) {
  // The seam after the last turn has the number of the next one.
  const most = target?.kind === 'seam' ? last + 1 : last;
  if (target === null || target.n <= most) return null;
  return (
    <p role="status" className="shrink-0 border-b border-line bg-sunken px-6 py-1.5 text-ui max-sm:px-3.5">
      There is no turn {target.n.toLocaleString('en')} in this conversation.{' '}
      <Link href={`/turn/${last}`} className="touch underline decoration-control underline-offset-3">
        Go to the last one, {last.toLocaleString('en')}
      </Link>
    </p>
  );
}
