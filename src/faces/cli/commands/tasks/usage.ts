import { type Command, Option } from 'commander';
import { inPages } from '../../../../core/pages.ts';
import { addUsage, NO_USAGE, type Usage } from '../../../../core/usage.ts';
import type { TaskUsageRow } from '../../../../ports/store/tasks.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { day } from '../../input.ts';
import { turns, usageLine } from '../../lines.ts';
import { oneLine } from '../../terminal-text.ts';

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
    .description('Show what the tasks of an owner (--as) have spent.')
    .addOption(new Option('--by <what>', 'sum up by this').choices(Object.keys(BY)).default('task'))
    .option('--since <day>', 'from this day on (UTC), such as 2026-01-31', day)
    .action((flags: UsageFlags) => usage(flags, cli));
  addHelp(command, {
    examples: ['throughline task usage --by milestone', 'throughline task usage --since 2026-01-01 --json'],
  });
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
      output.result({ [by]: name, ...sum }, `${oneLine(name)}  ${turns(sum.turns)}: ${usageLine(sum.usage)}`);
    }
    if (sums.size === 0) output.note('Nothing was used.');
  });
}
