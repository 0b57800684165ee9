import { type RefObject, useEffect, useRef, useState } from 'react';
import { INERT_MS } from './asked.ts';

/* Against answers by accident: cards that have just appeared or moved, and keys of somebody who types. */

/** A letter answers if no other key follows within this time: who begins to type a word must not approve anything. */
const ALONE_MS = 300;
/** After a typed character, no key answers for so long. */
const TYPING_MS = 600;

type Answers = Readonly<Record<string, (() => void) | undefined>>;

/**
 * Keys of one letter that answer while the focus is in the question around `part`. `onPress`: such a key goes down. Returns whether the
 * key that goes down now belongs to something that is being typed.
 */
export function useLetters(part: RefObject<HTMLElement | null>, answers: Answers, onPress: () => void): () => boolean {
  const latest = useRef({ answers, onPress });
  latest.current = { answers, onPress };
  const isTyped = useRef(false);
  useEffect(() => {
    const question = part.current?.closest<HTMLElement>('[data-question]');
    let waiting: number | undefined;
    let typedAt = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent) => {
      window.clearTimeout(waiting);
      const { key, target, repeat, timeStamp } = event;
      isTyped.current = timeStamp - typedAt < TYPING_MS;
      if (key.length === 1) typedAt = timeStamp;
      const answer = latest.current.answers[key];
      if (answer === undefined || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (!(target instanceof HTMLElement) || !question?.contains(target)) return;
      event.preventDefault();
      if (repeat || isTyped.current) return;
      latest.current.onPress();
      waiting = window.setTimeout(() => question.contains(document.activeElement) && answer(), ALONE_MS);
    };
    // In the capture phase, so that keys for other elements are seen, too.
    window.addEventListener('keydown', onKey, { capture: true });
    return () => {
      window.clearTimeout(waiting);
      window.removeEventListener('keydown', onKey, { capture: true });
    };
  }, [part]);
  return () => isTyped.current;
}

/** When the card last appeared at its position: it was rendered, it moved, or its tab became visible. */
export function useShownAt(movedAt: number): number {
  const [shownAt, setShownAt] = useState(() => performance.now());
  useEffect(() => {
    const again = () => document.visibilityState === 'visible' && setShownAt(performance.now());
    document.addEventListener('visibilitychange', again);
    return () => document.removeEventListener('visibilitychange', again);
  }, []);
  return Math.max(shownAt, movedAt);
}

/** Only for the look of the buttons. Whether a press counts depends on when it began. */
export function useIsReady(shownAt: number): boolean {
  const [readyFor, setReadyFor] = useState(-1);
  useEffect(() => {
    const timer = setTimeout(() => setReadyFor(shownAt), shownAt + INERT_MS - performance.now());
    return () => clearTimeout(timer);
  }, [shownAt]);
  return readyFor === shownAt;
}
