import { memo } from 'react';
import type { ToolPart } from '../../../src/core/turn/record.ts';
import { SafeText } from '../ui/safe-text.tsx';
import { duration } from '../ui/time.tsx';
import { toolText, useFold } from './find.ts';
import { hasFailedCommand, type Run, type RunWords, WORDS, wordsOf } from './runs.ts';
import { Thought } from './thought.tsx';
import { ToolRow, targetOf } from './tool.tsx';
import { doingOf } from './tool-kinds.ts';
import { ChangedLines, WorkLine } from './work-line.tsx';

interface RunViewProps {
  readonly steps: Run['steps'];
  /** The number of its turn. */
  readonly n: number;
  /** Its turn is running. */
  readonly isRunning: boolean;
  /** More of it may come. */
  readonly isLast: boolean;
}

/** A run of tools: one line, and when it is opened a row for each. A tool that is alone is its own line. */
export const RunView = memo(function RunView({ steps, n, isRunning, isLast }: RunViewProps) {
  const [isShown, toggle] = useFold(n, () => steps.map(textOf).join('\n'), hasFailedCommand(steps));
  const [first] = steps;
  if (first?.type === 'tool' && steps.length === 1) return <ToolRow tool={first} n={n} isRunning={isRunning} isAlone />;
  return (
    <div className="text-ui">
      <WorkLine isShown={isShown} onClick={toggle}>
        <Sentence words={wordsOf(steps, isRunning)} />
      </WorkLine>
      {isShown && (
        <ol className="ml-1.75 border-l border-line-strong pl-3.75">
          {steps.map((step, index) => (
            <li key={step.type === 'tool' ? step.id : String(index)}>
              {step.type === 'tool' ? (
                <ToolRow tool={step} n={n} isRunning={isRunning} />
              ) : (
                <Thought text={step.text} n={n} isOpen={isRunning && isLast && index === steps.length - 1} />
              )}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}, isSameRun);

/** The steps are grouped again with every word of the answer. */
function isSameRun(before: RunViewProps, now: RunViewProps): boolean {
  const isSame = before.n === now.n && before.isRunning === now.isRunning && before.isLast === now.isLast;
  return (
    isSame &&
    before.steps.length === now.steps.length &&
    before.steps.every((step, at) => isSameStep(step, now.steps[at]))
  );
}

/** A tool is a new object when it changes, a thought whenever it is read. */
function isSameStep(before: Run['steps'][number], now: Run['steps'][number] | undefined): boolean {
  return before === now || (before.type === 'thought' && now?.type === 'thought' && before.text === now.text);
}

function textOf(step: Run['steps'][number]): string {
  return step.type === 'tool' ? toolText(step) : step.text;
}

function Sentence({ words: { lead, did, failed, unknown, now, lines, ms } }: { words: RunWords }) {
  const parts = [
    did !== '' && <span className="text-ink">{did}</span>,
    failed !== '' && <strong className="font-semibold text-broken">{failed}</strong>,
    unknown > 0 && <span>{unknown === 1 ? '1 outcome unknown' : `${unknown} outcomes unknown`}</span>,
  ].filter((part) => part !== false);
  return (
    <>
      <span className="min-w-0 flex-1 truncate max-sm:whitespace-normal">
        {lead}
        {parts.map((part, index) => (
          <span key={String(index)}>
            {index > 0 && ', '}
            {part}
          </span>
        ))}
        {now !== null && (
          <>
            {parts.length > 0 && ' · '}
            <Now tool={now} />
          </>
        )}
      </span>
      {lines !== null && <ChangedLines lines={lines} />}
      {ms !== null && <span className="shrink-0 text-facts tabular-nums">{duration(ms)}</span>}
    </>
  );
}

function Now({ tool }: { tool: ToolPart }) {
  return (
    <>
      {WORDS[doingOf(tool)].does}{' '}
      <code className="font-mono text-facts text-ink">
        <SafeText text={targetOf(tool)} as="code" />
      </code>
    </>
  );
}
