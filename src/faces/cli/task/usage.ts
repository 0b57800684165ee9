import { type Command, Option } from 'commander';
import { inPages } from '../../../core/pages.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../core/usage.ts';
import type { TaskUsageRow } from '../../../ports/store/tasks.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { day } from '../option-values.ts';
import { turns } from '../receipt-line.ts';
import { oneLine } from '../terminal-text.ts';
import { usageLine } from '../usage-line.ts';

const BY = {
  task: ({ name, task }: TaskUsageRow) => name ?? task,
  milestone: ({ milestone }: TaskUsageRow) => milestone ?? '(none)',
  day: (row: TaskUsageRow) => row.day,
};

interface UsageFlags {
  readonly since?: string;
  readonly by: keyof typeof BY;
}

export function defineUsage(task: Command, cli: Cli): void {
  const command = task
    .command('usage')
    .summary('show what tasks have spent')
    .description('Show what tasks have spent; "--as" says whose.')
    .addOption(new Option('--by <what>', 'summed up so').choices(Object.keys(BY)).default('task'))
    .option('--since <day>', 'from this day on (UTC), as 2026-01-31', day)
    .action((flags: UsageFlags) => usage(flags, cli));
  addExamples(command, 'throughline task usage --by milestone', 'throughline task usage --since 2026-01-01 --json');
}

async function usage({ since, by }: UsageFlags, { output, withTasks }: Cli): Promise<void> {
  await withTasks(async ({ tasks }) => {
    const sums = new Map<string, { turns: number; usage: Usage }>();
    const filter = since === undefined ? {} : { since };
    const rows = inPages<TaskUsageRow>((last) => tasks.usage({ ...filter, ...(last && { before: last }) }));
    for await (const row of rows) {
      const sum = sums.get(BY[by](row)) ?? { turns: 0, usage: NO_USAGE };
      sums.set(BY[by](row), { turns: sum.turns + row.turns, usage: addUsage(sum.usage, row.usage) });
    }
    for (const [name, sum] of sums) {
      if (output.json) output.value({ [by]: name, ...sum });
      else output.line(`${oneLine(name)}  ${turns(sum.turns)}: ${usageLine(sum.usage)}`);
    }
    if (sums.size === 0) output.note('Nothing was used.');
    return DONE;
  });
}
