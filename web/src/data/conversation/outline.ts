import { useMemo } from 'react';
import type { TurnOutline } from 'throughline/client';
import { useConversation } from './use-conversation.ts';

interface OutlineState {
  /** All turns by number; null: they are being read. */
  readonly turns: readonly TurnOutline[] | null;
  readonly error: unknown;
}

/** Every turn without its text. */
export function useOutline(): OutlineState {
  const turns = useConversation(({ outline }) => outline);
  const error = useConversation(({ outline, outlineError }) => (outline === null ? outlineError : null));
  return useMemo(() => ({ turns, error }), [turns, error]);
}
