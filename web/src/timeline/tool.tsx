import { clsx } from 'clsx';
import {
  ArrowRightLeft,
  Brain,
  Check,
  ChevronRight,
  CircleDashed,
  CircleX,
  FilePen,
  FileText,
  Globe,
  type LucideIcon,
  Search,
  SquareTerminal,
  Trash2,
  Wrench,
} from 'lucide-react';
import { memo } from 'react';
import type { ToolPart } from '../../../src/core/turn/record.ts';
import { changedLines, outputBeside } from '../diff/tool-changes.ts';
import { ToolDiffs } from '../diff/tool-diffs.tsx';
import { CopyButton } from '../ui/notes.tsx';
import { SafeText } from '../ui/safe-text.tsx';
import { duration } from '../ui/time.tsx';
import { commandIn, toolText, useFold } from './find.ts';
import { withoutSequences } from './tool-output.ts';
import { type ToolState, toolState } from './turn-words.ts';

const ICONS: Readonly<Record<string, LucideIcon>> = {
  read: FileText,
  edit: FilePen,
  delete: Trash2,
  move: ArrowRightLeft,
  search: Search,
  execute: SquareTerminal,
  think: Brain,
  fetch: Globe,
};

const ENDS: Readonly<Record<ToolState, { readonly icon: LucideIcon; readonly word: string; readonly ink: string }>> = {
  running: { icon: CircleDashed, word: 'running', ink: 'text-accent' },
  completed: { icon: Check, word: 'done', ink: 'text-accent' },
  failed: { icon: CircleX, word: 'failed', ink: 'text-broken' },
  unknown: { icon: CircleDashed, word: 'outcome unknown', ink: 'text-muted' },
};

interface ToolProps {
  readonly tool: ToolPart;
  /** The number of its turn. */
  readonly n: number;
  /** Its turn is running. */
  readonly isRunning: boolean;
}

/** One line. When it is opened, also what the tool printed and changed. */
export const Tool = memo(function Tool({ tool, n, isRunning }: ToolProps) {
  const [isShown, toggle] = useFold(n, () => toolText(tool));
  const state = toolState(tool.status, isRunning);
  const { icon: End, word, ink } = ENDS[state];
  const Icon = ICONS[tool.kind] ?? Wrench;
  const change = changedLines(tool);
  const target = tool.target !== null && !tool.name.includes(tool.target) ? tool.target : null;
  return (
    <div className="my-1 text-ui">
      <button
        type="button"
        aria-expanded={isShown}
        onClick={toggle}
        className="-mx-1.5 flex w-[calc(100%+0.75rem)] items-center gap-2 rounded-sm px-1.5 py-0.5 text-left text-muted hover:bg-hover pointer-coarse:min-h-11"
      >
        <Icon size={14} className="shrink-0" aria-hidden />
        <span className="shrink-0 truncate text-ink max-sm:max-w-[60%]">
          <SafeText text={tool.name} as="code" />
        </span>
        {target !== null && (
          <code className="min-w-0 truncate font-mono text-facts">
            <SafeText text={target} as="code" />
          </code>
        )}
        <span className="ml-auto flex shrink-0 items-center gap-2 text-facts tabular-nums">
          {change !== null && (
            <span>
              <span className="text-add">+{change.added}</span> <span className="text-del">−{change.removed}</span>
            </span>
          )}
          {tool.ms !== undefined && <span>{duration(tool.ms)}</span>}
          <span className={clsx('flex items-center gap-1', ink)}>
            <End size={13} aria-hidden />
            <span className={clsx(state === 'completed' && 'sr-only')}>{word}</span>
          </span>
          <ChevronRight size={13} className={clsx(isShown && 'rotate-90')} aria-hidden />
        </span>
      </button>
      {isShown && <Opened tool={tool} />}
    </div>
  );
});

function Opened({ tool }: { tool: ToolPart }) {
  // The whole command; the target may be only its beginning.
  const command = tool.kind === 'execute' ? (commandIn(tool.input) ?? tool.target) : null;
  const printed = outputBeside(tool);
  return (
    <div className="mt-1 mb-2 space-y-2 pl-5.5">
      <ToolDiffs tool={tool} />
      {(printed !== null || command !== null) && <Output text={withoutSequences(printed ?? '')} command={command} />}
      {printed === null && command === null && tool.diffs === undefined && (
        <p className="text-facts text-muted">No output was recorded.</p>
      )}
      {tool.input !== null && command === null && (
        <details className="text-facts text-muted">
          <summary className="cursor-pointer pointer-coarse:py-3.5">Input</summary>
          <Output text={JSON.stringify(tool.input, null, 2)} command={null} />
        </details>
      )}
    </div>
  );
}

function Output({ text, command }: { text: string; command: string | null }) {
  return (
    <div className="group/output relative rounded-sm border border-line bg-sunken">
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll it
        tabIndex={0}
        className="max-h-96 overflow-auto px-2.5 py-2 font-mono text-facts leading-5 whitespace-pre-wrap"
      >
        {command !== null && (
          <span className="text-ink">
            <span className="text-faint select-none">$ </span>
            <SafeText text={command} as="code" />
            {'\n'}
          </span>
        )}
        <span className="text-muted">{text}</span>
      </pre>
      <span className="absolute top-0.5 right-0.5 rounded-sm bg-sunken opacity-0 group-hover/output:opacity-100 focus-within:opacity-100">
        <CopyButton text={text} label="Copy the output" />
      </span>
    </div>
  );
}
