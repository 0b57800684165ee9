import { Square } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { Turn } from 'throughline/client';
import { useShallow } from 'zustand/react/shallow';
import { tokensOf } from '../../../src/core/limits/budget.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { laneOf, shadeOf } from '../seams/line.ts';
import { useStrand } from '../seams/strands.ts';
import { Button } from '../ui/button.tsx';
import { Keys } from '../ui/keys.tsx';
import { SafeText } from '../ui/safe-text.tsx';
import { count, duration } from '../ui/time.tsx';
import { type NowWords, nowWords } from './now-words.ts';

const NOTHING: NowWords = { words: '', target: null };

/** The end of the line, above the composer: what the running turn does now, for how long, and how to stop it. */
export function Now({ turn, onStop }: { turn: Turn; onStop: (() => void) | null }) {
  const { words, target } = useConversation(
    useShallow(({ turns }) => {
      const item = turns.get(turn.n);
      return item === undefined ? NOTHING : nowWords(item);
    }),
  );
  const now = useSeconds();
  const tokens = tokensOf(turn.usage);
  const facts = [
    turn.startedAt === null ? '' : duration(Math.max(0, now - turn.startedAt)),
    tokens > 0 ? `${count(tokens)} tokens` : '',
  ].filter((fact) => fact !== '');
  return (
    <div className="relative flex min-h-7.5 items-center gap-2 pl-11 text-ui text-muted max-md:pl-9">
      <Tip turn={turn} />
      <p role="status" className="min-w-0 flex-1 truncate">
        {words}
        {target !== null && (
          <code className="ml-1.5 font-mono text-facts text-ink">
            <SafeText text={target} as="code" />
          </code>
        )}
      </p>
      <span className="shrink-0 text-facts text-faint tabular-nums">{facts.join(' · ')}</span>
      {onStop !== null && (
        <Button small look="quiet" onClick={onStop}>
          <Square size={12} aria-hidden />
          Stop<span className="sr-only"> the running turn</span>
          <span className="max-md:hidden" aria-hidden>
            <Keys keys="Escape" />
          </span>
        </Button>
      )}
    </div>
  );
}

/** The line of the session, and its end. */
function Tip({ turn }: { turn: Turn }) {
  const strand = useStrand(turn.n);
  const colour = shadeOf(strand);
  const side = laneOf(strand ?? 1) === 'left' ? 'left-0.5 max-md:-left-0.5' : 'left-3 max-md:left-2.5';
  return (
    <svg aria-hidden width="15" height="30" viewBox="0 0 15 30" className={`absolute inset-y-0 my-auto ${side}`}>
      <path d="M7.5 0V8" strokeWidth="3" style={{ stroke: colour }} />
      <circle cx="7.5" cy="15" r="6" fill="none" strokeWidth="2.4" style={{ stroke: colour }} />
      <circle cx="7.5" cy="15" r="2.8" style={{ fill: colour }} />
    </svg>
  );
}

/** The current time, each second. */
function useSeconds(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
