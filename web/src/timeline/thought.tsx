import { clsx } from 'clsx';
import { Brain, ChevronRight } from 'lucide-react';
import { Markdown } from '../markdown/markdown.tsx';
import { useFold } from './find.ts';

interface ThoughtProps {
  readonly text: string;
  /** The number of its turn. */
  readonly n: number;
  /** More of it may come. */
  readonly isOpen: boolean;
}

/** Folded at first: the answer matters more. */
export function Thought({ text, n, isOpen }: ThoughtProps) {
  const [isShown, toggle] = useFold(n, () => text);
  return (
    <div className="text-ui text-muted">
      <button
        type="button"
        aria-expanded={isShown}
        onClick={toggle}
        className="-mx-1.5 flex min-h-6 w-[calc(100%+0.75rem)] items-center gap-2 rounded-sm px-1.5 text-left hover:bg-hover pointer-coarse:min-h-11"
      >
        <Brain size={13} className="shrink-0" aria-hidden />
        <span className="w-16.5 shrink-0">{isOpen ? 'Thinking' : 'Thought'}</span>
        {!isShown && <span className="min-w-0 flex-1 truncate text-faint">{lastLine(text)}</span>}
        <ChevronRight size={13} className={clsx('ml-auto shrink-0', isShown && 'rotate-90')} aria-hidden />
      </button>
      {isShown && (
        <div className="mt-1 ml-5.5 border-l border-line pl-3">
          <Markdown text={text} isOpen={isOpen} />
        </div>
      )}
    </div>
  );
}

function lastLine(text: string): string {
  const end = text.slice(-400).trimEnd();
  return end.slice(end.lastIndexOf('\n') + 1);
}
