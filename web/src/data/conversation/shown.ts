import type { Turn } from 'throughline/client';
import { hasEnded } from '../../../../src/core/turn/turn.ts';
import type { ConversationState } from './state.ts';
import { useConversation } from './use-conversation.ts';

/** Whether the timeline shows a turn. What waits in the queue is shown once, in the composer. */
export function useIsShown(n: number): boolean {
  return useConversation((state) => isShown(state, n));
}

type Known = Pick<ConversationState, 'turns' | 'conversation'>;

export function isShown({ turns, conversation }: Known, n: number): boolean {
  const turn = turns.get(n)?.turn;
  if (turn === undefined) return true; // it is being loaded
  if (turn.state !== 'queued') return !leftQueue(turn);
  const isHeldUp = (conversation?.delayed ?? conversation?.stranded ?? null) !== null;
  return !isHeldUp && isNext(turns, n);
}

/** It was edited, moved or removed while it was queued. Nothing of it was sent: no agent has seen it. */
export function leftQueue({ state, startedAt, sent, imported }: Turn): boolean {
  return state === 'cancelled' && startedAt === null && sent === null && !imported;
}

/** No turn before it is open: it is about to begin. */
function isNext(turns: Known['turns'], n: number): boolean {
  for (let at = n - 1; at > 0; at -= 1) {
    const turn = turns.get(at)?.turn;
    if (turn === undefined) return true;
    if (!hasEnded(turn.state)) return false;
    if (!leftQueue(turn)) return true;
  }
  return true;
}
