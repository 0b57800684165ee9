import type { Task, TaskState } from 'throughline/client';
import { Glyph, type GlyphName } from '../ui/state.tsx';
import { dotsOf, spentShare, spentText } from './board.ts';

const STATES: Readonly<Record<TaskState, readonly [GlyphName | null, string]>> = {
  waiting: ['waiting', 'waits for other tasks'],
  queued: ['waiting', 'queued'],
  running: ['working', 'working'],
  asking: ['needs', 'asks you'],
  done: ['done', 'done'],
  failed: ['failed', 'gave up'],
  cancelled: [null, 'cancelled'],
};

export function TaskStateMark({ state }: { state: TaskState }) {
  const [glyph, word] = STATES[state];
  return (
    <span className="inline-flex items-center gap-1.5 text-facts text-muted">
      {glyph !== null && <Glyph name={glyph} label="" />}
      {word}
    </span>
  );
}

/** `try 3 of 5 · $1.92 of $5`. */
export function triesText(task: Task): string {
  const { maxIterations, progress } = task;
  const tries = progress.iteration === 0 ? `${maxIterations} tries` : `try ${progress.iteration} of ${maxIterations}`;
  return [tries, spentText(task)].filter(Boolean).join(' · ');
}

const TRIES: Readonly<Record<'done' | 'current' | 'left' | 'passed', GlyphName>> = {
  done: 'failed',
  current: 'working',
  left: 'waiting',
  passed: 'done',
};

/** One glyph for each try of this round; nothing for many. */
export function TaskTries({ task }: { task: Task }) {
  const dots = dotsOf(task);
  if (dots === null) return null;
  const last = task.state === 'done' ? dots.lastIndexOf('done') : -1;
  return (
    <span role="img" aria-label={triesText(task)} className="inline-flex shrink-0 items-center gap-0.5">
      {dots.map((dot, index) => (
        <Glyph key={String(index)} name={TRIES[index === last ? 'passed' : dot]} label="" className="size-3!" />
      ))}
    </span>
  );
}

/** The tries of the round, and how much of the budget is spent. */
export function TaskProgress({ task }: { task: Task }) {
  const share = spentShare(task);
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-facts text-faint">
      <TaskTries task={task} />
      <span className="tabular-nums">{triesText(task)}</span>
      {share !== null && <BudgetBar share={share} />}
    </div>
  );
}

function BudgetBar({ share }: { share: number }) {
  const percent = Math.round(share * 100);
  const colour = share >= 1 ? 'bg-broken' : share > 0.8 ? 'bg-look' : 'bg-muted';
  return (
    <span className="inline-flex min-w-0 flex-1 items-center gap-1.5">
      <span className="h-1 min-w-8 flex-1 overflow-hidden rounded-full bg-line">
        <span className={`block h-full ${colour}`} style={{ width: `${Math.min(100, percent)}%` }} />
      </span>
      <span className="shrink-0 tabular-nums" title={`${percent}% of its budget is spent`}>
        {percent}%
      </span>
    </span>
  );
}
