import { clsx } from 'clsx';
import { type ClipboardEvent, type KeyboardEvent, useLayoutEffect, useRef } from 'react';
import { COMPOSER_ID, composerField } from '../ui/focus.ts';
import { isApple } from '../ui/keys.tsx';
import { isTouch } from '../ui/screen.ts';
import { takeOver } from './awaited.ts';
import { type FieldFacts, type KeyMeaning, keyMeaning } from './keys.ts';

export function focusComposer(): void {
  const field = composerField();
  field?.focus();
  field?.setSelectionRange(field.value.length, field.value.length);
}

/** To be called at once, not after a render: the caret must not move while somebody types on. */
export function placeCaret(caret: number): void {
  composerField()?.setSelectionRange(caret, caret);
}

export interface FieldProps {
  readonly text: string;
  readonly placeholder: string;
  readonly suggests: boolean;
  readonly activeSuggestion: string | null;
  onText(text: string, caret: number): void;
  onMeaning(meaning: Exclude<KeyMeaning, null | 'nothing'>): void;
  onFiles(files: readonly File[]): void;
  onFocus?(): void;
  readonly className?: string;
}

const FIELD =
  'block max-h-[40dvh] w-full resize-none bg-transparent px-3.5 pt-2.5 pb-1 text-said outline-none [grid-area:field] field-sizing-content placeholder:text-faint pointer-coarse:min-h-11 max-md:px-2 max-md:py-2.5 max-md:placeholder-shown:overflow-hidden max-md:placeholder-shown:whitespace-nowrap md:px-2';

/** The field of the prompt. It grows with its text. */
export function Field(props: FieldProps) {
  const { text, placeholder, suggests, activeSuggestion, onText, onMeaning, onFiles, onFocus, className } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height depends on the text
  useLayoutEffect(() => {
    const { current } = field;
    if (current === null || CSS.supports('field-sizing', 'content')) return;
    current.style.height = 'auto';
    current.style.height = `${current.scrollHeight}px`;
  }, [text]);
  useLayoutEffect(takeOver, []);
  const onKey = (event: KeyboardEvent) => {
    const meaning = meaningOf(event, { isEmpty: text === '', isTouch: isTouch(), suggests });
    if (meaning === null) return;
    event.preventDefault();
    event.stopPropagation();
    if (meaning !== 'nothing') onMeaning(meaning);
  };
  const onPaste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    onFiles(files);
  };
  return (
    <textarea
      id={COMPOSER_ID}
      ref={field}
      aria-label="Prompt"
      dir="auto"
      aria-autocomplete="list"
      aria-controls={suggests ? 'composer-suggestions' : undefined}
      aria-activedescendant={activeSuggestion ?? undefined}
      placeholder={placeholder}
      rows={1}
      enterKeyHint={isTouch() ? 'enter' : 'send'}
      className={clsx(FIELD, className)}
      value={text}
      onChange={({ target }) => onText(target.value, target.selectionStart)}
      onSelect={({ currentTarget }) => onText(currentTarget.value, currentTarget.selectionStart)}
      onKeyDown={onKey}
      onPaste={onPaste}
      onFocus={onFocus}
    />
  );
}

function meaningOf(event: KeyboardEvent, facts: FieldFacts): KeyMeaning {
  const { key, shiftKey, altKey, metaKey, ctrlKey, repeat, nativeEvent, keyCode } = event;
  const pressed = {
    key,
    shift: shiftKey,
    alt: altKey,
    mod: isApple() ? metaKey : ctrlKey,
    repeats: repeat,
    // In Safari, the key that ends a composition arrives after its end, with the code 229.
    composes: nativeEvent.isComposing || keyCode === 229,
  };
  return keyMeaning(pressed, facts);
}
