import type { Turn } from 'throughline/client';
import { useShallow } from 'zustand/react/shallow';
import { hasEnded } from '../../../src/core/turn/turn.ts';
import type { TurnItem } from '../data/conversation/model.ts';
import type { ConversationState } from '../data/conversation/state.ts';
import { useConversation } from '../data/conversation/use-conversation.ts';

interface OpenTurns {
  /** The turn that an agent works on, or that waits for an answer; null: none. */
  readonly running: Turn | null;
  /** In the order in which they will run. */
  readonly queued: readonly Turn[];
}

/** The running turn and the queue. A first prompt that nothing holds up is about to run, and is not shown as queued. */
export function openTurns(items: Iterable<Pick<TurnItem, 'turn'>>, isHeldUp: boolean): OpenTurns {
  const open = [...items].map(({ turn }) => turn).filter(({ state }) => !hasEnded(state));
  const running = open.find(({ state }) => state !== 'queued') ?? null;
  const queued = open.filter(({ state }) => state === 'queued').sort((a, b) => a.n - b.n);
  return { running, queued: running === null && !isHeldUp ? queued.slice(1) : queued };
}

/** Changes when the state of a turn changes, not with every word of an answer. */
export function useOpenTurns(): OpenTurns {
  const [running = null, ...queued] = useConversation(
    useShallow(({ turns, conversation }: ConversationState) => {
      const isHeldUp = conversation !== null && (conversation.delayed ?? conversation.stranded) !== null;
      const open = openTurns(turns.values(), isHeldUp);
      return [open.running, ...open.queued];
    }),
  );
  return { running, queued: queued.filter((turn) => turn !== null) };
}
