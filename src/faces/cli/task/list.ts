import { type Command, Option } from 'commander';
import { TASK_STATES, type TaskState } from '../../../core/tasks/task.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { positiveNumber } from '../option-values.ts';
import { styled } from '../output.ts';
import { allTasks } from './all-tasks.ts';
import { nameOf, taskLine } from './names.ts';

interface ListFlags {
  readonly state?: TaskState;
  readonly milestone?: string;
  readonly limit: number;
}

export function defineList(task: Command, cli: Cli): void {
  const command = task
    .command('list')
    .summary('list tasks, the newest first')
    .description('List tasks, the newest first.')
    .addOption(new Option('--state <state>', 'only those').choices(TASK_STATES))
    .option('--milestone <name>', 'only those of this milestone')
    .option('--limit <n>', 'at most so many', positiveNumber, 50)
    .action((flags: ListFlags) => list(flags, cli));
  addExamples(command, 'throughline task list', 'throughline task list --state asking --json');
}

async function list({ state, milestone, limit }: ListFlags, { output, withTasks }: Cli): Promise<void> {
  await withTasks(async ({ tasks }) => {
    const filter = { ...(state && { states: [state] }), ...(milestone !== undefined && { milestone }) };
    let none = true;
    for await (const task of allTasks(tasks, filter, limit)) {
      none = false;
      if (output.json) output.value(task);
      else output.line(styled('dim', task.id), '  ', styled('bold', nameOf(task)), `  ${taskLine(task)}`);
    }
    if (none) output.note('There are no such tasks.');
    return DONE;
  });
}
