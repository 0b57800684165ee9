import type { PublicTask } from '../../../../core/public/task.ts';
import { inPages } from '../../../../flow/pages.ts';
import type { TaskListFilter, Tasks } from '../../../../ports/tasks.ts';
import { strandedLine, turns } from '../../lines.ts';
import { cutTo, oneLine } from '../../terminal-text.ts';

/** What the commands of this folder share: reading tasks page by page, and a task in words. */

const PAGE = 200;

/** At most `most`, or all; newest first, in as many pages as it takes. */
export function allTasks(
  tasks: Tasks,
  filter: Omit<TaskListFilter, 'limit' | 'before'>,
  most?: number,
): AsyncGenerator<PublicTask> {
  const read = (last: PublicTask | undefined, wanted: number) =>
    tasks.list({ ...filter, limit: Math.min(wanted, PAGE), ...(last && { before: last.id }) });
  return inPages(read, most);
}

const LONGEST = 60;

/** What a person calls a task: its name, else the beginning of its goal. */
export function nameOf({ name, goal }: Pick<PublicTask, 'name' | 'goal'>): string {
  return cutTo(oneLine(name ?? goal), LONGEST);
}

/** One task in one line. */
export function taskLine({ progress, state, agent, stranded }: PublicTask): string {
  const hasReason = progress.decision !== null && !['running', 'cancelled', 'waiting'].includes(state);
  const why = hasReason ? `: ${oneLine(progress.decision?.reason ?? '')}` : '';
  const nobody = stranded === null ? '' : `${why === '' ? '.' : ''} ${oneLine(strandedLine(stranded))}`;
  return `${state}, ${turns(progress.turns)} of ${oneLine(agent)}${why}${nobody}`;
}
