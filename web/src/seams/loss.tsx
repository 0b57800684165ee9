import { ArrowUp, Unplug } from 'lucide-react';
import { useMemo } from 'react';
import type { Receipt } from 'throughline/client';
import { useLocation } from 'wouter';
import type { ConversationState } from '../data/conversation/state.ts';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { Button } from '../ui/button.tsx';
import { type Loss, lossOf } from './seam.ts';
import { lineEndIn } from './strands.ts';
import { rangeText } from './strip.ts';

/** The loss that lasts: of the session that answers the next prompt, if it lacked half of the conversation or more when it began. */
export interface LastingLoss extends Loss {
  /** The turn before which it happened. */
  readonly n: number;
}

/** How many turns back the last receipt is searched. Prompts that were never sent have none. */
const LOOK_BACK = 60;

export function lastingLossIn(state: ConversationState): LastingLoss | null {
  const latest = latestReceipt(state);
  const loss = latest === null ? null : lossOf(latest);
  if (loss === null) return null;
  const n = strandBegin(state);
  // All turns before the seam were the history then. Its own receipt may not be loaded.
  return loss.dropped * 2 < n - 1 ? null : { ...loss, n };
}

function latestReceipt({ receipts, last }: ConversationState): Receipt | null {
  for (let n = last; n >= Math.max(0, last - LOOK_BACK); n -= 1) {
    const found = receipts.get(n)?.findLast(({ rung }) => rung !== 'none');
    if (found !== undefined) return found;
  }
  return null;
}

/** The first turn of the last strand. */
function strandBegin(state: ConversationState): number {
  const strand = lineEndIn(state, state.last + 1)?.strand ?? lineEndIn(state, state.last)?.strand;
  for (let n = state.last + 1; n > 1; n -= 1) {
    const before = lineEndIn(state, n - 1);
    if (before === null || before.strand !== strand) return n;
  }
  return 1;
}

function useLastingLoss(): LastingLoss | null {
  const store = useConversationStore();
  const receipts = useConversation((state) => state.receipts);
  const outline = useConversation((state) => state.outline);
  const last = useConversation((state) => state.last);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it changes with these only
  return useMemo(() => lastingLossIn(store.state.getState()), [store, receipts, outline, last]);
}

/** Under the header, until a later seam mends it. */
export function LossBanner() {
  const loss = useLastingLoss();
  const [, go] = useLocation();
  if (loss === null) return null;
  const known = loss.known === 0 ? 'none' : loss.known.toLocaleString('en');
  return (
    <div
      role="status"
      aria-label="What the session does not know"
      className="flex min-h-8.5 shrink-0 flex-wrap items-center gap-2.5 border-b border-look-line bg-look-soft px-6 py-0.5 text-ui max-sm:px-3.5"
    >
      <Unplug size={15} className="shrink-0 text-look" aria-hidden />
      <p className="min-w-0 flex-1">
        <b className="font-semibold text-look">
          This session knows {known} of {loss.of.toLocaleString('en')} turns.
        </b>{' '}
        <span className="text-muted">It may contradict what was decided before.</span>
      </p>
      <Button small look="quiet" onClick={() => go(`/seam/${loss.n}`)}>
        Show where
        <ArrowUp size={13} aria-hidden />
      </Button>
    </div>
  );
}

/** Beside the button that sends: what the session that answers does not know. */
export function LossNote() {
  const loss = useLastingLoss();
  if (loss === null) return null;
  return (
    <span className="flex min-w-0 items-center gap-1.5 text-facts text-look tabular-nums">
      <Unplug size={13} className="shrink-0" aria-hidden />
      <span className="min-w-0 truncate">
        does not know {loss.dropped === 1 ? 'turn' : 'turns'} {rangeText({ from: 1, to: loss.dropped })}
      </span>
    </span>
  );
}
