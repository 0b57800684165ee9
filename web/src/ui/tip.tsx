import { Tooltip } from '@base-ui/react/tooltip';
import type { ReactElement } from 'react';
import { Keys } from './keys.tsx';

/** A short explanation of a control. Never the only place where something is said: touch screens do not show it. */
export function Tip({ text, keys, children }: { text: string; keys?: string; children: ReactElement }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger render={children} />
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6} className="z-50">
          <Tooltip.Popup className="flex max-w-72 items-center gap-2 rounded-md border border-line bg-raised px-2 py-1 text-[13px] text-ink shadow-lg">
            {text}
            {keys !== undefined && <Keys keys={keys} />}
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}
