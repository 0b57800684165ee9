import { useEffect, useRef } from 'react';
import type { Conversation } from 'throughline/client';
import { useLocation } from 'wouter';
import { type Beginning, createConversation } from '../../data/conversation/create.ts';
import { NEW, sendDraft, useDraft } from '../../data/drafts/draft.ts';
import { useClient } from '../../data/session.ts';
import { shellWord } from '../../ui/shell-word.ts';
import { awaitComposer } from '../awaited.ts';

export interface Begin {
  send(): Promise<void>;
}

/** Creates the conversation, sends its first prompt, and goes there. `lookUp`: the conversation that has the key already, if any. */
export function useBegin(from: Beginning, agent: string | null, lookUp: () => Promise<Conversation | null>): Begin {
  const tl = useClient();
  const [, go] = useLocation();
  const { next } = useDraft(NEW);
  const made = useRef<string | null>(null);
  const { title, key, cwd, worktree } = from;
  // biome-ignore lint/correctness/useExhaustiveDependencies: for other values another conversation is made
  useEffect(() => {
    made.current = null;
  }, [title, key, cwd, worktree]);
  const send = async () => {
    // A second try after a failure uses the conversation that the first one created.
    if (made.current === null && (await lookUp()) !== null) return;
    const to = async () => {
      made.current ??= await createConversation(tl, from, next.agent ?? agent);
      return made.current;
    };
    const accepted = await sendDraft(tl, NEW, agent, to);
    if (accepted === null) return;
    awaitComposer(accepted.turn.conversationId);
    go(`/c/${accepted.turn.conversationId}`);
  };
  return { send };
}

/** The equivalent command. */
export function cliLine({ title, key, cwd, worktree }: Beginning, agent: string | null, text: string): string {
  const words = [shellWord(key || 'KEY'), shellWord(text.trim() === '' ? 'PROMPT' : text.trim())];
  if (agent !== null) words.push('--agent', shellWord(agent));
  if (title.trim() !== '') words.push('--title', shellWord(title.trim()));
  if (cwd.trim() !== '') words.push('--cwd', shellWord(cwd.trim()));
  if (cwd.trim() !== '' && worktree) words.push('--worktree');
  return `throughline send ${words.join(' ')}`;
}
