import type { Command } from 'commander';
import { inPages } from '../../../../core/input/pages.ts';
import type { UsageRow } from '../../../../ports/store/usage.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { day } from '../../input.ts';
import { turns, usageLine } from '../../lines.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .option('--since <day>', 'from this day on (UTC), such as 2026-01-31', day)
    .action((filter: { since?: string }) => usage(filter, cli));
  addHelp(command, { examples: ['throughline usage', 'throughline usage --since 2026-01-01 --json'] });
}

async function usage({ since }: { since?: string }, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const filter = since === undefined ? {} : { since };
    const rows = inPages<UsageRow>((last) => engine.usage({ ...filter, ...(last && { before: last }) }));
    const show = (row: UsageRow) =>
      output.line(`${row.day}  ${oneLine(row.agent)}  ${turns(row.turns)}: ${usageLine(row.usage)}`);
    await output.each(rows, show, 'Nothing was used.');
  });
}
