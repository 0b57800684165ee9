import { CircleCheck, CircleDashed, CircleHelp, CircleSlash, CircleX, Clock, Play } from 'lucide-react';
import type { Task, TaskState } from 'throughline/client';
import { dotsOf, spentShare } from './board.ts';

const STATES: Readonly<Record<TaskState, readonly [typeof Clock, string, string]>> = {
  waiting: [CircleDashed, 'waits for other tasks', 'text-faint'],
  queued: [Clock, 'queued', 'text-faint'],
  running: [Play, 'running', 'text-accent'],
  asking: [CircleHelp, 'asks', 'text-look'],
  done: [CircleCheck, 'done', 'text-accent'],
  failed: [CircleX, 'failed', 'text-broken'],
  cancelled: [CircleSlash, 'cancelled', 'text-faint'],
};

export function TaskStateMark({ state }: { state: TaskState }) {
  const [Icon, word, colour] = STATES[state];
  return (
    <span className={`inline-flex items-center gap-1 text-facts ${colour}`}>
      <Icon size={14} aria-hidden />
      {word}
    </span>
  );
}

/** The iterations of the round, and how much of the budget is spent. */
export function TaskProgress({ task }: { task: Task }) {
  const dots = dotsOf(task);
  const share = spentShare(task);
  const text = `iteration ${task.progress.iteration} of ${task.maxIterations}`;
  return (
    <div className="flex items-center gap-3 text-facts text-faint">
      {dots === null ? (
        <span className="tabular-nums">{text}</span>
      ) : (
        <span role="img" aria-label={text} title={text} className="inline-flex gap-1">
          {dots.map((dot, index) => (
            <span key={String(index)} className={`size-1.5 rounded-full ${DOTS[dot]}`} />
          ))}
        </span>
      )}
      {share !== null && <BudgetBar share={share} />}
    </div>
  );
}

const DOTS = { done: 'bg-muted', current: 'bg-accent', left: 'bg-line' };

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
