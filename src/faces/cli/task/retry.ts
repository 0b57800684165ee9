import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { positiveNumber } from '../option-values.ts';
import { watchTasks } from './watch.ts';

interface RetryFlags {
  readonly say?: string;
  readonly budget?: string;
  readonly maxIterations?: number;
}

export function defineRetry(task: Command, cli: Cli): void {
  const command = task
    .command('retry')
    .summary('go on with a task that asks, has failed or was cancelled')
    .description(
      'Go on with a task that asks, has failed or was cancelled: in the same conversation, knowing what was.',
    )
    .argument('<task>', 'its id or name')
    .option('--say <text>', 'what to tell the agent')
    .option('--budget <amount>', 'a new budget; what was spent so far counts')
    .option('--max-iterations <n>', 'give up after so many more turns', positiveNumber)
    .action((id: string, flags: RetryFlags) => retry(id, flags, cli));
  addExamples(
    command,
    'throughline task retry parser --say "Commas inside quotes do not separate"',
    "throughline task retry parser --budget '5 USD'",
  );
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
    // What came after it waits no longer, and this process was asked for one task.
    if (!desk.served && (await desk.tasks.list({ states: ['queued'], limit: 1 })).length > 0) {
      cli.output.note('Others are queued; "throughline task run" goes on with them.');
    }
    return code;
  });
}
