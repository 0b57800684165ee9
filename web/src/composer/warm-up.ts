import { useEffect, useRef, useState } from 'react';
import { useConversation } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { describeError } from '../data/errors.ts';

export type Warmth =
  | { readonly phase: 'cold' | 'warming' | 'warm' }
  /** Not an error yet: the next prompt tries again, and reports it if it fails too. */
  | { readonly phase: 'failed'; readonly why: string };

/**
 * Restores the session before the prompt is sent, when somebody begins to write: once between two turns. Not after the session was
 * killed on this page: then the next prompt restores it, which shows how that works.
 */
export function useWarmUp(agent: string | null): readonly [Warmth, () => void] {
  const { warm } = useVerbs();
  const head = useConversation(({ conversation }) => conversation?.head ?? 0);
  const hasLive = useConversation(({ sessions }) => sessions.some(({ state }) => state === 'live'));
  const may = useConversation(({ conversation, isKilled }) => conversation?.open === 0 && !isKilled && !hasLive);
  const [warmth, setWarmth] = useState<Warmth>({ phase: 'cold' });
  const asked = useRef('');
  useEffect(() => {
    // If its process ends before the next turn, the session may be warmed up again.
    if (!hasLive) return;
    asked.current = '';
    setWarmth({ phase: 'cold' });
  }, [hasLive]);
  const begin = () => {
    const occasion = `${head} ${agent}`;
    if (!may || asked.current === occasion) return;
    asked.current = occasion;
    setWarmth({ phase: 'warming' });
    warm(agent).then(
      (receipt) => setWarmth({ phase: receipt === null ? 'cold' : 'warm' }),
      (error) => setWarmth({ phase: 'failed', why: describeError(error).message }),
    );
  };
  return [hasLive ? { phase: 'warm' } : warmth, begin];
}
