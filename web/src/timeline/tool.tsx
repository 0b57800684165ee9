import { clsx } from 'clsx';
import {
  Bot,
  ChevronRight,
  FilePen,
  FileText,
  Globe,
  ListChecks,
  type LucideIcon,
  Search,
  SquareTerminal,
  Wrench,
} from 'lucide-react';
import { memo, useMemo } from 'react';
import type { ToolPart } from '../../../src/core/turn/record.ts';
import { changedFiles, outputBeside } from '../diff/tool-changes.ts';
import { ToolDiffs } from '../diff/tool-diffs.tsx';
import { SafeText } from '../ui/safe-text.tsx';
import { duration } from '../ui/time.tsx';
import { commandIn, toolText, useFold } from './find.ts';
import { Output } from './output.tsx';
import { WORDS } from './runs.ts';
import { factOf } from './tool-facts.ts';
import { type Doing, doingOf } from './tool-kinds.ts';
import { toolState } from './turn-words.ts';
import { ChangedLines, WorkLine } from './work-line.tsx';

const ICONS: Readonly<Record<Doing, LucideIcon>> = {
  read: FileText,
  change: FilePen,
  search: Search,
  command: SquareTerminal,
  fetch: Globe,
  helper: Bot,
  plan: ListChecks,
  other: Wrench,
};

interface ToolProps {
  readonly tool: ToolPart;
  /** The number of its turn. */
  readonly n: number;
  /** Its turn is running. */
  readonly isRunning: boolean;
  /** There is no other tool beside it. */
  readonly isAlone?: boolean;
}

/** A row: what was done, with what, and what is known of it. When it is opened, also what the tool printed and changed. */
export const ToolRow = memo(function ToolRow({ tool, n, isRunning, isAlone = false }: ToolProps) {
  const doing = doingOf(tool);
  const isFailedCommand = doing === 'command' && tool.status === 'failed';
  const [isShown, toggle] = useFold(n, () => toolText(tool), isFailedCommand);
  const Icon = ICONS[doing];
  if (isAlone && isSmallChange(tool)) return <ToolDiffs tool={tool} />;
  const isGoing = toolState(tool.status, isRunning) === 'running';
  const word = isGoing ? WORDS[doing].does : WORDS[doing].did;
  const target = (
    <code className="min-w-0 flex-1 truncate font-mono text-facts text-ink">
      <SafeText text={targetOf(tool)} as="code" />
    </code>
  );
  return (
    <div className="text-ui">
      {isAlone ? (
        <WorkLine isShown={isShown} onClick={toggle}>
          <span className="shrink-0">{word}</span>
          {target}
          <Facts tool={tool} isRunning={isRunning} />
        </WorkLine>
      ) : (
        <button
          type="button"
          aria-expanded={isShown}
          onClick={toggle}
          className="-mx-1.5 flex min-h-6 w-[calc(100%+0.75rem)] items-center gap-2 rounded-sm px-1.5 text-left text-muted hover:bg-hover pointer-coarse:min-h-11"
        >
          <Icon size={13} className="shrink-0" aria-hidden />
          <span className="w-16.5 shrink-0">{word}</span>
          {target}
          <Facts tool={tool} isRunning={isRunning} />
          <ChevronRight size={13} className={clsx('shrink-0 text-faint', isShown && 'rotate-90')} aria-hidden />
        </button>
      )}
      {isShown && <Opened tool={tool} isEnd={isFailedCommand} />}
    </div>
  );
});

/** A longer change is opened on request. */
const MOST_ROWS_IN_PLACE = 60;

function isSmallChange(tool: ToolPart): boolean {
  const rows = changedFiles(tool).reduce((sum, { diff }) => sum + diff.rows.length, 0);
  return tool.status === 'completed' && rows > 0 && rows <= MOST_ROWS_IN_PLACE;
}

/** What a tool worked on, or its name. */
export function targetOf(tool: ToolPart): string {
  const { name, target } = tool;
  const what = commandIn(tool.input) ?? target;
  if (doingOf(tool) !== 'other') return what ?? name;
  return what === null || name.includes(what) ? name : `${name} ${what}`;
}

/** `lines 1–120`, `exit 1 · 12 s`. */
function Facts({ tool, isRunning }: { tool: ToolPart; isRunning: boolean }) {
  const { words, exit, lines } = factOf(tool);
  const state = toolState(tool.status, isRunning);
  return (
    <span className="flex shrink-0 items-center gap-2 text-facts tabular-nums">
      {lines !== null && <ChangedLines lines={lines} />}
      {words !== null && <span>{words}</span>}
      {state === 'failed' && (
        <strong className="font-semibold text-broken">{exit === null ? 'failed' : `exit ${exit}`}</strong>
      )}
      {state === 'unknown' && <span>outcome unknown</span>}
      {tool.ms !== undefined && <span>{duration(tool.ms)}</span>}
    </span>
  );
}

/** `isEnd`: the end of the output matters, because it says what failed. */
function Opened({ tool, isEnd }: { tool: ToolPart; isEnd: boolean }) {
  // The whole command; the target may be only its beginning.
  const command = doingOf(tool) === 'command' ? (commandIn(tool.input) ?? tool.target) : null;
  const printed = useMemo(() => outputBeside(tool), [tool]);
  return (
    <div className="mt-1 mb-2 space-y-2 pl-5.5">
      <ToolDiffs tool={tool} />
      {(printed !== null || command !== null) && <Output text={printed ?? ''} command={command} isEnd={isEnd} />}
      {printed === null && command === null && tool.diffs === undefined && (
        <p className="text-facts text-muted">No output was recorded.</p>
      )}
      {tool.input !== null && command === null && (
        <details className="text-facts text-muted">
          <summary className="cursor-pointer pointer-coarse:py-3.5">Input</summary>
          <Output text={JSON.stringify(tool.input, null, 2)} />
        </details>
      )}
    </div>
  );
}
