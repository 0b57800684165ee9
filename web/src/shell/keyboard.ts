import { useEffect } from 'react';
import { isApple } from '../ui/keys.tsx';
import { allActions } from './actions.ts';

/** How long the second key of `g i` may take. */
const SEQUENCE_MS = 900;

/** Runs actions by their keys. One listener for the whole page. */
export function useKeyboard(): void {
  useEffect(() => {
    let first: { readonly key: string; readonly at: number } | null = null;
    const onKey = (event: KeyboardEvent) => {
      // While an input method composes, it handles the keys.
      if (event.defaultPrevented || event.isComposing || event.repeat) return;
      const pressed = pressedKeys(event);
      // An open dialog handles its own keys.
      const isCovered = document.querySelector('[role=dialog]') !== null;
      // Alt with an arrow types nothing.
      const isFree = pressed.includes('Mod+') || (pressed.startsWith('Alt+Arrow') && !isCovered);
      if ((isTyping(event.target) || isCovered) && !isFree) return;
      const sequence = first !== null && event.timeStamp - first.at < SEQUENCE_MS ? `${first.key} ${pressed}` : null;
      const action = allActions().find(({ keys }) => keys === sequence || keys === pressed);
      first = action === undefined ? { key: pressed, at: event.timeStamp } : null;
      if (action === undefined) return;
      event.preventDefault();
      action.run();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
}

/** The keys in the notation of actions: `Mod+K`. Shift is part of the character: `?`, not `Shift+?`. */
export function pressedKeys(
  event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>,
  apple = isApple(),
): string {
  const [isMod, isOther] = apple ? [event.metaKey, event.ctrlKey] : [event.ctrlKey, event.metaKey];
  const key = event.key.length === 1 && isMod ? event.key.toUpperCase() : event.key;
  const shift = isMod && event.shiftKey ? 'Shift+' : '';
  return `${isMod ? 'Mod+' : ''}${isOther ? 'Other+' : ''}${event.altKey ? 'Alt+' : ''}${shift}${key}`;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable="true"]') !== null;
}
