import type { Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';
import { positiveNumber } from '../../input.ts';
import { watchTasks } from './watch.ts';

interface RetryFlags {
  readonly say?: string;
  readonly budget?: string;
  readonly maxIterations?: number;
}

export function defineRetry(task: Command, cli: Cli): void {
  const command = task
    .command('retry')
    .summary('continue a task that asks, has failed or was cancelled')
    .description('Continue a task that asks, has failed or was cancelled, in the same conversation.')
    .argument('<task>', 'its id or name')
    .option('--say <text>', 'a message for the agent')
    .option('--budget <amount>', 'a new budget; includes what was already spent')
    .option('--max-iterations <n>', 'give up after this many more turns', positiveNumber)
    .action((id: string, flags: RetryFlags) => retry(id, flags, cli));
  addHelp(command, {
    examples: [
      'throughline task retry parser --say "Commas inside quotes do not separate"',
      "throughline task retry parser --budget '5 USD'",
    ],
  });
}

async function retry(id: string, { say, budget, maxIterations }: RetryFlags, cli: Cli): Promise<void> {
  await cli.withTasks(async (desk) => {
    const after = await desk.tasks.lastSeq();
    const task = await desk.tasks.retry(id, {
      ...(say !== undefined && { say }),
      ...(budget !== undefined && { budget }),
      ...(maxIterations !== undefined && { maxIterations }),
    });
    const code = await watchTasks(desk, [task], after, cli);
    // Tasks that waited for this one may be queued now, but this process was asked for one task.
    if (!desk.served && (await desk.tasks.list({ states: ['queued'], limit: 1 })).length > 0) {
      cli.output.note('Other tasks are queued. To continue with them, run "throughline task run".');
    }
    return code;
  });
}
