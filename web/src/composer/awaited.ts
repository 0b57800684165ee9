import { draftOf, editDraft, NEW } from '../data/drafts/draft.ts';
import { composerField } from '../ui/focus.ts';

/** The conversation whose composer will be shown soon, and how to stop waiting for it. */
let awaited: { readonly id: string; stop(): void } | null = null;

/** How long a conversation may take to open. After that, keys do again what they do elsewhere. */
const LONGEST_MS = 10_000;

/**
 * To be called before the page goes to a conversation that was just made. Until its composer is shown there is no field, and somebody who
 * types on would open the search or press other keys of the page. What they type goes into the draft of the conversation.
 */
export function awaitComposer(id: string): void {
  awaited?.stop();
  const onKey = (event: KeyboardEvent) => {
    const isText = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
    if (!isText || document.activeElement !== document.body) return;
    event.preventDefault();
    event.stopPropagation();
    editDraft(id, { text: draftOf(id).getState().text + event.key });
  };
  const timer = setTimeout(() => awaited?.stop(), LONGEST_MS);
  window.addEventListener('keydown', onKey, true);
  const stop = () => {
    clearTimeout(timer);
    window.removeEventListener('keydown', onKey, true);
    awaited = null;
  };
  awaited = { id, stop };
}

/** When a field is shown that was waited for: it gets the focus, and what was typed before. */
export function takeOver(): void {
  if (awaited === null) return;
  const { id, stop } = awaited;
  stop();
  // Typed into the field for the first prompt after that prompt was accepted.
  const rest = draftOf(NEW).getState().text;
  if (rest !== '') {
    editDraft(id, { text: rest + draftOf(id).getState().text });
    editDraft(NEW, { text: '' });
  }
  // A question of the agent may have the focus.
  if (document.activeElement === document.body) composerField()?.focus();
}
