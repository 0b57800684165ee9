import { clsx } from 'clsx';
import { ChevronRight } from 'lucide-react';
import type { ReactNode } from 'react';

/** A line that opens what was done below it. */
export function WorkLine({ isShown, onClick, children }: { isShown: boolean; onClick(): void; children: ReactNode }) {
  return (
    <button
      type="button"
      aria-expanded={isShown}
      onClick={onClick}
      className="-mx-1.5 flex min-h-7 w-[calc(100%+0.75rem)] items-center gap-2 rounded-sm px-1.5 text-left text-muted hover:bg-hover pointer-coarse:min-h-11"
    >
      <ChevronRight size={14} className={clsx('shrink-0', isShown && 'rotate-90')} aria-hidden />
      {children}
    </button>
  );
}

/** How many lines were added and removed. */
export function ChangedLines({ lines: { added, removed } }: { lines: { added: number; removed: number } }) {
  return (
    <span className="shrink-0 font-mono text-facts whitespace-nowrap">
      <span className="text-add">+{added}</span> <span className="text-del">−{removed}</span>
    </span>
  );
}
