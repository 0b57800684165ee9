import { Dialog as Base } from '@base-ui/react/dialog';
import { clsx } from 'clsx';
import { X } from 'lucide-react';
import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import { Button, IconButton } from './button.tsx';
import { afterDialog } from './focus.ts';
import { CliLine, ErrorNote } from './notes.tsx';
import { isTouch } from './screen.ts';

export interface DialogProps {
  readonly open: boolean;
  onClose(): void;
  readonly title: string;
  readonly children: ReactNode;
  /** `sheet`: from the bottom on a phone, from the right where there is room. */
  readonly shape?: 'middle' | 'sheet';
  readonly className?: string;
}

const SHAPES = {
  middle: 'left-1/2 top-[12vh] w-[min(40rem,calc(100vw-2rem))] -translate-x-1/2 max-h-[76vh] rounded-lg',
  sheet:
    'inset-x-0 bottom-0 max-h-[85dvh] rounded-t-[16px] pb-[env(safe-area-inset-bottom)] sm:inset-y-0 sm:left-auto sm:right-0 sm:max-h-none sm:w-[min(28rem,100vw)] sm:rounded-none',
};

export function Dialog({ open, onClose, title, children, shape = 'middle', className }: DialogProps) {
  const popup = useRef<HTMLDivElement>(null);
  const isPulled = shape === 'sheet' && isTouch();
  useSwipeDown(popup, open && isPulled, onClose);
  // The first field, if there is one. By touch it would open the screen keyboard, and a focused button would show its tip.
  const focused = (by: string) =>
    (by === 'touch' ? null : popup.current?.querySelector<HTMLElement>('input, textarea, select')) ?? popup.current;
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-shade" />
        <Base.Popup
          ref={popup}
          initialFocus={focused}
          finalFocus={afterDialog}
          className={clsx(
            'fixed z-40 flex flex-col overflow-hidden border border-line bg-raised shadow-2xl outline-none',
            SHAPES[shape],
            className,
          )}
        >
          {isPulled && (
            <div aria-hidden className="mx-auto mt-1.5 h-1 w-9 shrink-0 rounded-full bg-line-strong sm:hidden" />
          )}
          <div className="flex items-center justify-between gap-2 border-b border-line py-1.5 pl-4 pr-2">
            <Base.Title className="text-said font-semibold">{title}</Base.Title>
            <IconButton label="Close" keys="Escape" small onClick={onClose}>
              <X size={16} />
            </IconButton>
          </div>
          <div className="min-h-0 flex-1 overflow-y-auto">{children}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  );
}

/** A shorter swipe moves the sheet back. */
const FAR_PX = 90;

/** Closes a sheet that a finger pulls down: at its head, or anywhere if nothing below the finger is scrolled. */
function useSwipeDown(sheet: RefObject<HTMLElement | null>, isOn: boolean, onClose: () => void): void {
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    if (!isOn) return;
    let startY: number | null = null;
    const inSheet = ({ target }: TouchEvent) => target instanceof Element && sheet.current?.contains(target) === true;
    const pull = (px: number) => {
      if (sheet.current !== null) sheet.current.style.translate = px > 0 ? `0 ${px}px` : '';
    };
    const start = (event: TouchEvent) => {
      const [touch] = event.touches;
      const isOne = event.touches.length === 1 && touch !== undefined;
      startY = isOne && inSheet(event) && !isScrolled(event.target, sheet.current) ? touch.clientY : null;
    };
    const move = ({ touches: [touch] }: TouchEvent) => {
      if (startY === null || touch === undefined) return;
      // Upwards it scrolls.
      if (touch.clientY < startY) startY = null;
      pull(startY === null ? 0 : touch.clientY - startY);
    };
    const end = ({ changedTouches: [touch] }: TouchEvent) => {
      const isFar = startY !== null && touch !== undefined && touch.clientY - startY > FAR_PX;
      startY = null;
      pull(0);
      if (isFar) close.current();
    };
    const listeners = { touchstart: start, touchmove: move, touchend: end, touchcancel: () => pull(0) } as const;
    for (const [name, run] of Object.entries(listeners))
      document.addEventListener(name, run as EventListener, { passive: true });
    return () => {
      for (const [name, run] of Object.entries(listeners)) document.removeEventListener(name, run as EventListener);
    };
  }, [sheet, isOn]);
}

/** Whether something between the finger and the sheet is scrolled, so that the finger scrolls it back. */
function isScrolled(target: EventTarget | null, sheet: HTMLElement | null): boolean {
  for (let at = target instanceof Element ? target : null; at !== null && at !== sheet; at = at.parentElement) {
    if (at.scrollTop > 0 || at.matches('input, textarea, select')) return true;
  }
  return false;
}

interface ConfirmProps {
  readonly open: boolean;
  onClose(): void;
  readonly title: string;
  /** What will happen, and what can be chosen. */
  readonly children: ReactNode;
  /** The equivalent command. */
  readonly cli: string;
  /** The text of the button that does it. */
  readonly label: string;
  /** The text of the other button; left out: `Cancel`. */
  readonly otherwise?: string;
  readonly look?: 'danger' | 'primary';
  readonly disabled?: boolean;
  /** When it resolves, the dialog closes. When it rejects, the dialog stays open and shows the error. */
  run(): Promise<void>;
}

/** Asks for confirmation. */
export function Confirm(props: ConfirmProps) {
  const { open, onClose, title } = props;
  return (
    <Dialog open={open} onClose={onClose} title={title}>
      {open && <Question {...props} />}
    </Dialog>
  );
}

function Question({ onClose, children, cli, label, otherwise, look, disabled, run }: ConfirmProps) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const confirmed = async () => {
    setBusy(true);
    setError(null);
    try {
      await run();
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <form
      className="space-y-3 p-4 text-ui"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy && disabled !== true) void confirmed();
      }}
    >
      {children}
      {error !== null && <ErrorNote error={error} />}
      <CliLine line={cli} />
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{otherwise ?? 'Cancel'}</Button>
        <Button look={look ?? 'danger'} type="submit" disabled={isBusy || disabled === true}>
          {label}
        </Button>
      </div>
    </form>
  );
}

/** A checkbox with its label. */
export function Choice({ label, value, onChange }: { label: string; value: boolean; onChange(value: boolean): void }) {
  return (
    <label className="flex items-center gap-2 pointer-coarse:min-h-11">
      <input
        type="checkbox"
        className="accent-ink"
        checked={value}
        onChange={({ target }) => onChange(target.checked)}
      />
      {label}
    </label>
  );
}
