import type { Command } from 'commander';
import { taskHasEnded } from '../../../../core/tasks/task.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { nameOf, taskLine } from './tasks.ts';

/** How long we wait for the process that runs a task to end it. */
const WAIT_MS = 10_000;

export function defineCancel(task: Command, cli: Cli): void {
  const command = task
    .command('cancel')
    .summary('stop tasks, with their agents and gates')
    .description('Stop tasks, with their agents and gates.')
    .argument('<task...>', 'ids or names')
    .action((ids: string[]) => cancel(ids, cli));
  addHelp(command, { examples: ['throughline task cancel parser', 'throughline task cancel parser printer --json'] });
}

async function cancel(ids: readonly string[], { output, withTasks }: Cli): Promise<void> {
  await withTasks(async ({ tasks }) => {
    const asked = [];
    for (const id of ids) asked.push((await tasks.cancel(id)).id);
    for (const task of await tasks.waitFor(asked, { signal: AbortSignal.timeout(WAIT_MS) })) {
      const state = taskHasEnded(task.state) ? taskLine(task) : 'was asked to stop, but has not ended yet';
      output.result(task, `${nameOf(task)}  ${state}`);
    }
  });
}
