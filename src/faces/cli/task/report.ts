import type { Command } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { allTasks } from './all-tasks.ts';
import { reportLines } from './report-markdown.ts';

export function defineReport(task: Command, cli: Cli): void {
  const command = task
    .command('report')
    .summary('tell how a task went: sessions, lock waits, decisions, usage, gates')
    .description('Tell how tasks went, as markdown: sessions, lock waits, decisions, usage and what their gates said.')
    .argument('[task...]', 'ids or names; none: all tasks')
    .option('--milestone <name>', 'every task of a milestone, in the order that they were added')
    .action((ids: string[], flags: { milestone?: string }) => report(ids, flags, cli));
  addExamples(
    command,
    'throughline task report parser > report.md',
    "throughline task report --milestone m1 --json | jq '.task.progress.spent'",
  );
}

async function report(ids: readonly string[], { milestone }: { milestone?: string }, cli: Cli): Promise<void> {
  const { output, withTasks } = cli;
  if (ids.length > 0 && milestone !== undefined) {
    throw new ThroughlineError('invalid', 'Name tasks or a milestone, not both.', {
      hint: 'Ask for one after the other.',
    });
  }
  await withTasks(async ({ tasks }) => {
    const filter = milestone === undefined ? {} : { milestone };
    const wanted = ids.length > 0 ? ids : (await Array.fromAsync(allTasks(tasks, filter), ({ id }) => id)).toReversed();
    for (const id of wanted) {
      const one = await tasks.report(id);
      if (output.json) output.value(one);
      else for (const line of reportLines(one)) output.line(line);
    }
    if (wanted.length === 0) output.note('There are no such tasks.');
    return DONE;
  });
}
