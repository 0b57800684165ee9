import type { Task, TaskState } from 'throughline/client';
import { tokensOf } from '../../../src/core/limits/budget.ts';
import { count } from '../ui/time.tsx';

const COLUMNS: readonly (readonly [string, readonly TaskState[]])[] = [
  ['Needs you', ['asking']],
  ['Running', ['running']],
  ['Waiting', ['queued', 'waiting']],
  ['Done', ['done']],
  ['Failed or cancelled', ['failed', 'cancelled']],
];

/** The columns of the board. `milestone`: only its tasks; null: all. */
export function columnsOf(tasks: readonly Task[], milestone: string | null) {
  const shown = milestone === null ? tasks : tasks.filter((task) => task.milestone === milestone);
  return COLUMNS.map(([title, states]) => ({ title, tasks: shown.filter(({ state }) => states.includes(state)) }));
}

export function milestonesOf(tasks: readonly Task[]): string[] {
  return [...new Set(tasks.flatMap(({ milestone }) => milestone ?? []))].toSorted((a, b) => a.localeCompare(b));
}

type Dot = 'done' | 'current' | 'left';

const MOST_DOTS = 12;

/** One dot for each iteration of this round; null: too many for dots. */
export function dotsOf({ state, maxIterations, progress }: Task): readonly Dot[] | null {
  if (maxIterations > MOST_DOTS) return null;
  const isOver = state === 'done' || state === 'failed' || state === 'cancelled';
  const used = state === 'waiting' || state === 'queued' ? progress.iteration - 1 : progress.iteration;
  return Array.from({ length: maxIterations }, (_, index) => {
    if (index + 1 < used || (isOver && index + 1 === used)) return 'done';
    return index + 1 === used ? 'current' : 'left';
  });
}

/** The spent share of the budget, above 1 if it is exceeded; null: there is no budget. */
export function spentShare({ budget, progress }: Task): number | null {
  const { costMicros, tokens } = budget;
  const shares = [
    costMicros === null ? null : progress.spent.costMicros / costMicros,
    tokens === null ? null : tokensOf(progress.spent) / tokens,
  ].filter((share) => share !== null);
  return shares.length === 0 ? null : Math.max(...shares);
}

/** `$1.92 of $5`, `1.2k of 50k tokens`; empty: there is no budget. */
export function spentText({ budget, progress }: Task): string {
  const { costMicros, tokens } = budget;
  if (costMicros !== null) return `${dollars(progress.spent.costMicros)} of ${dollars(costMicros)}`;
  return tokens === null ? '' : `${count(tokensOf(progress.spent))} of ${count(tokens)} tokens`;
}

function dollars(micros: number): string {
  const amount = micros / 1_000_000;
  return `$${Number.isInteger(amount) ? amount : amount.toFixed(2)}`;
}

/** Whether the task can be cancelled or retried now. */
export function canBe({ state, cancelRequested }: Task): { readonly cancelled: boolean; readonly retried: boolean } {
  const isOver = state === 'done' || state === 'failed' || state === 'cancelled';
  return {
    cancelled: !isOver && !cancelRequested,
    retried: state === 'asking' || state === 'failed' || state === 'cancelled',
  };
}
