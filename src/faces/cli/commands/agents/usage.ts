import type { Command } from 'commander';
import { given } from '../../../../core/input/arguments.ts';
import { inPages } from '../../../../flow/pages.ts';
import type { UsageRow } from '../../../../ports/store/usage.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { day } from '../../input.ts';
import { usageTable } from '../../lines.ts';

export function define(command: Command, cli: Cli): void {
  command
    .option('--since <day>', 'from this day on (UTC), such as 2026-01-31', day)
    .action((filter: { since?: string }) => usage(filter, cli));
  addHelp(command, {
    about:
      'Days are in UTC, newest first. At a terminal the bars compare the tokens of all kinds. What an agent does not report is shown as –. ' +
      'With --json, each row is one line.',
    examples: ['throughline usage', 'throughline usage --since 2026-01-01 --json'],
  });
}

async function usage({ since }: { since?: string }, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const all = await Array.fromAsync(inPages<UsageRow>((last) => engine.usage(given({ since, before: last }))));
    const named = all.map(({ day, agent, ...row }) => ({ names: [day, agent], ...row }));
    if (output.json) for (const row of all) output.value(row);
    else for (const line of usageTable(named, output.width)) output.line(line);
    if (all.length === 0) output.note('There is no usage yet.');
  });
}
