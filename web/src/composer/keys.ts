/** A key that was pressed in the field. */
interface PressedKey {
  readonly key: string;
  readonly shift: boolean;
  readonly alt: boolean;
  /** Ctrl, or ⌘ on a Mac. */
  readonly mod: boolean;
  /** The key is held down, and this is a repetition. */
  readonly repeats: boolean;
  /** An input method composes, and handles the key. */
  readonly composes: boolean;
}

export interface FieldFacts {
  readonly isEmpty: boolean;
  /** A screen keyboard has no Shift+Enter. */
  readonly isTouch: boolean;
  /** Suggestions are open. They use some of the keys. */
  readonly suggests: boolean;
}

export type KeyMeaning =
  | 'send'
  /** Cancels the running turn, and runs before all queued turns. */
  | 'send-now'
  | 'stop'
  | 'recall'
  | 'choose'
  | 'next'
  | 'previous'
  | 'close'
  /** Ignored: the repetition of a held key. */
  | 'nothing'
  /** The field handles it: it is text, or moves the caret. */
  | null;

/** What a key does. While an input method composes, Enter ends a word and never sends. */
export function keyMeaning(pressed: PressedKey, facts: FieldFacts): KeyMeaning {
  const { key, composes, repeats, mod, alt } = pressed;
  if (composes) return null;
  const meaning =
    facts.suggests && !mod && !alt ? (SUGGESTING[key] ?? plainMeaning(pressed, facts)) : plainMeaning(pressed, facts);
  const isMove = meaning === 'next' || meaning === 'previous';
  return repeats && meaning !== null && !isMove ? 'nothing' : meaning;
}

const SUGGESTING: Readonly<Record<string, KeyMeaning>> = {
  Enter: 'choose',
  Tab: 'choose',
  ArrowDown: 'next',
  ArrowUp: 'previous',
  Escape: 'close',
};

function plainMeaning({ key, shift, alt, mod }: PressedKey, { isEmpty, isTouch }: FieldFacts): KeyMeaning {
  if (key === 'Enter' && mod) return 'send-now';
  if (key === 'Enter' && !shift && !alt) return isTouch ? null : 'send';
  if (key === 'Escape') return 'stop';
  return key === 'ArrowUp' && isEmpty && !shift && !alt && !mod ? 'recall' : null;
}
