import { useEffect, useRef, useState } from 'react';
import { useConversation, useConversationStore } from '../data/conversation/use-conversation.ts';
import { useVerbs } from '../data/conversation/verbs.ts';
import { clearIfAccepted, editDraft, sendDraft } from '../data/drafts/draft.ts';
import { wordsIn } from '../data/drafts/prompt.ts';
import { describeError } from '../data/errors.ts';
import { useClient } from '../data/session.ts';
import { sayError } from '../ui/say.ts';
import { moved, queueOf } from './queue/order.ts';
import { useOpenTurns } from './turns.ts';

/** How long the second Escape may take. */
const TWICE_MS = 2_000;

/** What the keys and buttons of the composer do. */
export function useSending(agent: string | null) {
  const tl = useClient();
  const store = useConversationStore();
  const { cancel, requeue } = useVerbs();
  const { running, queued } = useOpenTurns();
  const [isStopAsked, setStopAsked] = useState(false);
  useEffect(() => {
    if (!isStopAsked) return;
    const timer = setTimeout(() => setStopAsked(false), TWICE_MS);
    return () => clearTimeout(timer);
  }, [isStopAsked]);
  const trying = (work: Promise<unknown>) => work.catch(sayError);
  const send = async (now: boolean) => {
    const accepted = await sendDraft(tl, store.id, agent);
    if (accepted === null) return;
    // A queued prompt is shown above the composer: the timeline does not have to scroll.
    if (now || running === null) store.hasSent();
    if (!now || running === null) return;
    // The prompt becomes the first in the queue before the running turn is cancelled.
    const ids = [...queued.map(({ id }) => id), accepted.turn.id];
    if (ids.length > 1) await trying(requeue(queueOf(moved(ids, ids.length - 1, 0))));
    await trying(cancel(running.id));
  };
  const stop = (isSure = isStopAsked) => {
    if (running === null) return;
    setStopAsked(!isSure);
    if (isSure) void trying(cancel(running.id));
  };
  const recall = () => {
    const { turns, last } = store.state.getState();
    const prompt = turns.get(last)?.turn.prompt ?? [];
    editDraft(store.id, { text: wordsIn(prompt) });
  };
  return { send, stop, isStopAsked: isStopAsked && running !== null, recall };
}

/** Clears a draft whose turn is stored although this page got no reply: the reply was lost, or the page was closed. */
export function useClearAccepted(): void {
  const { id } = useConversationStore();
  const accepted = useConversation(({ turns, last }) => turns.get(last)?.turn.requestId);
  useEffect(() => {
    if (accepted) clearIfAccepted(id, accepted);
  }, [id, accepted]);
}

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
