import { useEffect, useRef } from 'react';
import { useConversationStore } from '../data/conversation/use-conversation.ts';
import { noticesOf } from '../for-you/notify.ts';
import type { ForYouSections } from '../for-you/sections.ts';
import { announce } from './announce.ts';
import { newsOf } from './news.ts';

/** Announces what happens in the open conversation. It renders nothing: an answer changes with every word. */
export function useConversationNews(): void {
  const { state } = useConversationStore();
  useEffect(() => state.subscribe((now, before) => newsOf(before, now).forEach(announce)), [state]);
}

/** Announces what happens in other conversations: `open` is the one that announces its own. */
export function useForYouNews(now: ForYouSections, isReady: boolean, open: string | null): void {
  const before = useRef<ForYouSections | null>(null);
  useEffect(() => {
    const known = before.current;
    before.current = isReady ? now : null;
    if (!isReady || known === null) return;
    for (const { title, path, isNeed } of noticesOf(known, now)) {
      if (path !== `/c/${open}`) announce({ text: `${title}.`, urgency: isNeed ? 'assertive' : 'polite' });
    }
  }, [now, isReady, open]);
}
