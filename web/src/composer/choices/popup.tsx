import { Popover } from '@base-ui/react/popover';
import { clsx } from 'clsx';
import type { ReactNode } from 'react';

interface ChoicePopupProps {
  /** The heading, and for assistive technology the beginning of the name of the button. */
  readonly title: string;
  /** What the button shows. */
  readonly label: ReactNode;
  readonly className?: string;
  readonly children: ReactNode;
  onOpen?(): void;
}

/** A quiet button in the bar of the composer that opens choices for the next prompt. */
export function ChoicePopup({ title, label, className, children, onOpen }: ChoicePopupProps) {
  return (
    <Popover.Root onOpenChange={(isOpen) => isOpen && onOpen?.()}>
      <Popover.Trigger
        className={clsx(
          'flex min-h-7 min-w-0 items-center gap-1.5 rounded-md px-2 text-ui text-muted hover:bg-hover hover:text-ink pointer-coarse:min-h-11 pointer-coarse:min-w-11',
          className,
        )}
      >
        <span className="sr-only">{title}: </span>
        {label}
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Positioner side="top" align="start" sideOffset={8} className="z-40">
          <Popover.Popup className="max-h-[70dvh] w-[min(25rem,calc(100vw-1.5rem))] space-y-3 overflow-y-auto rounded-lg border border-line-strong bg-raised p-4 text-ui shadow-xl outline-none">
            <Popover.Title className="text-ui font-semibold">{title}</Popover.Title>
            {children}
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
