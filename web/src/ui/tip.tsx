import { Tooltip } from '@base-ui/react/tooltip';
import { useEffect, useState } from 'react';
import { Keys } from './keys.tsx';

/** How long a pointer rests on a control before its tip is shown. */
const DELAY_MS = 400;

/** The attributes of a control with a tip. Touch screens do not show tips, so a tip repeats what is said elsewhere. */
export function tip(text: string, keys?: string) {
  return { 'data-tip': text, ...(keys !== undefined && { 'data-tip-keys': keys }) };
}

interface Shown {
  readonly anchor: HTMLElement;
  readonly text: string;
  readonly keys: string | undefined;
}

/** The one tip of the page, for every control with `tip(…)`. A tooltip component in each control would make long lists slow. */
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
            className="flex max-w-72 items-center gap-2 rounded-md border border-line bg-raised px-2 py-1 text-ui text-ink shadow-lg"
          >
            {text}
            {keys !== undefined && <Keys keys={keys} />}
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}

/** Shows the tip when the pointer rests on the control, or keys focus it. Hides it when either leaves, or something is pressed. */
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
