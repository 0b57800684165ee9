import type { Task } from '../../../core/tasks/task.ts';
import { oneLine } from '../terminal-text.ts';

const LONGEST = 60;

/** What a person calls a task: its name, else how its goal begins. */
export function nameOf({ name, goal }: Pick<Task, 'name' | 'goal'>): string {
  const text = oneLine(name ?? goal);
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`;
}

/** One task in one line. */
export function taskLine(task: Task): string {
  const { progress, state, agent } = task;
  const turns = `${progress.turns} ${progress.turns === 1 ? 'turn' : 'turns'}`;
  const why = progress.decision === null || state === 'running' ? '' : `: ${oneLine(progress.decision.reason)}`;
  return `${state}, ${turns} of ${oneLine(agent)}${state === 'cancelled' || state === 'waiting' ? '' : why}`;
}
