import { Tooltip } from '@base-ui/react/tooltip';
import { useEffect, useState } from 'react';
import { Keys } from './keys.tsx';

/** So long a pointer rests on a control before its tip shows. */
const DELAY_MS = 400;

/** What a control has for its tip. Never the only place where something is said: touch screens do not show it. */
export function tip(text: string, keys?: string) {
  return { 'data-tip': text, ...(keys !== undefined && { 'data-tip-keys': keys }) };
}

interface Shown {
  readonly anchor: HTMLElement;
  readonly text: string;
  readonly keys: string | undefined;
}

/** The one tip of the page, for every control that has `tip(…)`. One for each control would cost more than all else that a row has. */
export function Tips() {
  const [shown, show] = useState<Shown | null>(null);
  useEffect(() => watchTips(show), []);
  if (shown === null) return null;
  const { anchor, text, keys } = shown;
  return (
    <Tooltip.Root open onOpenChange={(isOpen) => !isOpen && show(null)}>
      <Tooltip.Portal>
        <Tooltip.Positioner anchor={anchor} sideOffset={6} className="pointer-events-none z-50">
          <Tooltip.Popup
            role="tooltip"
            className="flex max-w-72 items-center gap-2 rounded-md border border-line bg-raised px-2 py-1 text-[13px] text-ink shadow-lg"
          >
            {text}
            {keys !== undefined && <Keys keys={keys} />}
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}

/** Shown when a pointer rests on the control, or keys bring the focus there; gone when it leaves, or something is pressed. */
function watchTips(show: (shown: Shown | null) => void): () => void {
  let timer = 0;
  const hide = () => {
    clearTimeout(timer);
    show(null);
  };
  const showOf = (control: HTMLElement) => {
    const { tip: text, tipKeys: keys } = control.dataset;
    if (text !== undefined && control.isConnected) show({ anchor: control, text, keys });
  };
  const controlOf = ({ target }: Event) =>
    target instanceof Element ? target.closest<HTMLElement>('[data-tip]') : null;
  const over = (event: PointerEvent) => {
    const control = controlOf(event);
    hide();
    if (control !== null && event.pointerType === 'mouse') timer = window.setTimeout(showOf, DELAY_MS, control);
  };
  const focus = (event: FocusEvent) => {
    const control = controlOf(event);
    if (control?.matches(':focus-visible')) showOf(control);
  };
  const listeners = { pointerover: over, focusin: focus, focusout: hide, pointerdown: hide, keydown: hide };
  for (const [name, listener] of Object.entries(listeners)) document.addEventListener(name, listener as EventListener);
  return () => {
    clearTimeout(timer);
    for (const [name, listener] of Object.entries(listeners))
      document.removeEventListener(name, listener as EventListener);
  };
}
