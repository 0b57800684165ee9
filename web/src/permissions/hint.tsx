import { type ReactNode, useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import { create } from 'zustand';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { Button } from '../ui/button.tsx';

/** The ids of the questions whose cards are on the screen. */
const useOnScreen = create<ReadonlySet<string>>(() => new Set());

function noteOnScreen(id: string, isOnScreen: boolean): void {
  useOnScreen.setState((before) => {
    const after = new Set(before);
    if (isOnScreen) after.add(id);
    else after.delete(id);
    return after;
  }, true);
}

/** Around the card of a question: notes whether it is on the screen. */
export function Noticed({ id, children }: { id: string; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => noteOnScreen(id, entry?.isIntersecting ?? false));
    if (box.current !== null) observer.observe(box.current);
    return () => {
      observer.disconnect();
      noteOnScreen(id, false);
    };
  }, [id]);
  return <div ref={box}>{children}</div>;
}

/** Above the prompt field while no open question is on the screen: leads to the first one. */
export function QuestionHint() {
  const open = useConversation(({ permissions }) => permissions);
  const onScreen = useOnScreen();
  const [first] = open;
  const n = useConversation(({ turns }) => [...turns.values()].find(({ turn }) => turn.id === first?.turnId)?.turn.n);
  const [, go] = useLocation();
  if (first === undefined || n === undefined || open.some(({ id }) => onScreen.has(id))) return null;
  return (
    <p className="mb-2 flex items-center gap-2 rounded-md border border-look-line bg-look-soft px-3 py-1 text-ui">
      <span className="min-w-0 flex-1">
        {open.length === 1 ? 'A question waits for you.' : `${open.length} questions wait for you.`}
      </span>
      <Button small onClick={() => go(`/turn/${n}`)}>
        Show it
      </Button>
    </p>
  );
}
