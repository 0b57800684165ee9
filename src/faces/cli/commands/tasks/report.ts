import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { reportLines } from './report-markdown.ts';
import { allTasks } from './tasks.ts';

export function defineReport(task: Command, cli: Cli): void {
  const command = task
    .command('report')
    .summary('report how a task went: sessions, lock waits, decisions, usage, gates')
    .description(
      'Report how tasks went, as Markdown: sessions, lock waits, decisions, usage and the results of their gates.',
    )
    .argument('[task...]', 'ids or names (else all tasks)')
    .option('--milestone <name>', 'all tasks of this milestone, in the order in which they were added')
    .action((ids: string[], flags: { milestone?: string }) => report(ids, flags, cli));
  addHelp(command, {
    examples: [
      'throughline task report parser > report.md',
      "throughline task report --milestone m1 --json | jq '.task.progress.spent'",
    ],
  });
}

async function report(ids: readonly string[], { milestone }: { milestone?: string }, cli: Cli): Promise<void> {
  const { output, withTasks } = cli;
  if (ids.length > 0 && milestone !== undefined) {
    throw new ThroughlineError('invalid', 'Name tasks or a milestone, not both.', {
      hint: 'Leave one of them out.',
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
  });
}
