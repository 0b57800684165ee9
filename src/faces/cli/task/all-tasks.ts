import { inPages } from '../../../core/pages.ts';
import type { Task } from '../../../core/tasks/task.ts';
import type { TaskListFilter, Tasks } from '../../../ports/tasks.ts';

const PAGE = 200;

/** At most so many, or all; the newest first, however many pages that takes. */
export function allTasks(
  tasks: Tasks,
  filter: Omit<TaskListFilter, 'limit' | 'before'>,
  most?: number,
): AsyncGenerator<Task> {
  const read = (last: Task | undefined, wanted: number) =>
    tasks.list({ ...filter, limit: Math.min(wanted, PAGE), ...(last && { before: last.id }) });
  return inPages(read, most);
}
