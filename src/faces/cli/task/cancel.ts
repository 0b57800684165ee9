import type { Command } from 'commander';
import { taskHasEnded } from '../../../core/tasks/task.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { nameOf, taskLine } from './names.ts';

/** A running task is ended by the process that runs it; so long we wait to see it. */
const WAIT_MS = 10_000;

export function defineCancel(task: Command, cli: Cli): void {
  const command = task
    .command('cancel')
    .summary('stop tasks, with their agents and gates')
    .description('Stop tasks, with their agents and gates.')
    .argument('<task...>', 'ids or names')
    .action((ids: string[]) => cancel(ids, cli));
  addExamples(command, 'throughline task cancel parser', 'throughline task cancel parser printer --json');
}

async function cancel(ids: readonly string[], { output, withTasks }: Cli): Promise<void> {
  await withTasks(async ({ tasks }) => {
    const asked = [];
    for (const id of ids) asked.push((await tasks.cancel(id)).id);
    for (const task of await tasks.waitFor(asked, { signal: AbortSignal.timeout(WAIT_MS) })) {
      if (output.json) output.value(task);
      else if (taskHasEnded(task.state)) output.line(`${nameOf(task)}  ${taskLine(task)}`);
      else output.line(`${nameOf(task)}  was asked to stop and has not ended yet`);
    }
    return DONE;
  });
}
