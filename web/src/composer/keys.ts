/** What is known of a key that somebody pressed in the field. */
export interface PressedKey {
  readonly key: string;
  readonly shift: boolean;
  readonly alt: boolean;
  /** Ctrl, or ⌘ on a Mac. */
  readonly mod: boolean;
  /** It is held down, and this is not the first time. */
  readonly repeats: boolean;
  /** An input method is composing, and the key is for it. */
  readonly composes: boolean;
}

export interface FieldFacts {
  readonly isEmpty: boolean;
  /** A screen keyboard has no Shift+Enter. */
  readonly isTouch: boolean;
  /** Suggestions are open, and take the keys that choose one. */
  readonly suggests: boolean;
}

export type KeyMeaning =
  | 'send'
  /** Before everything that waits, and in place of what runs. */
  | 'send-now'
  | 'stop'
  | 'recall'
  | 'choose'
  | 'next'
  | 'previous'
  | 'close'
  /** A held key that would have done something. */
  | 'nothing'
  /** It is text, or a key of the field. */
  | null;

/** What a key does. Enter is for the input method while it composes: it ends a word, and never sends. */
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
