import { type Command, Option } from 'commander';
import { TASK_STATES, type TaskState } from '../../../../core/tasks/task.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { positiveNumber } from '../../input.ts';
import { styled } from '../../output.ts';
import { allTasks, nameOf, taskLine } from './tasks.ts';

interface ListFlags {
  readonly state?: TaskState;
  readonly milestone?: string;
  readonly limit: number;
}

export function defineList(task: Command, cli: Cli): void {
  const command = task
    .command('list')
    .summary('list tasks, newest first')
    .description('List tasks, newest first.')
    .addOption(new Option('--state <state>', 'only tasks in this state').choices(TASK_STATES))
    .option('--milestone <name>', 'only tasks of this milestone')
    .option('--limit <n>', 'at most this many', positiveNumber, 50)
    .action((flags: ListFlags) => list(flags, cli));
  addHelp(command, { examples: ['throughline task list', 'throughline task list --state asking --json'] });
}

async function list({ state, milestone, limit }: ListFlags, { output, withTasks }: Cli): Promise<void> {
  await withTasks(async ({ tasks }) => {
    const filter = { ...(state && { states: [state] }), ...(milestone !== undefined && { milestone }) };
    await output.each(
      allTasks(tasks, filter, limit),
      (task) => output.line(styled('dim', task.id), '  ', styled('bold', nameOf(task)), `  ${taskLine(task)}`),
      'There are no such tasks.',
    );
  });
}
