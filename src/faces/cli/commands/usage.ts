import type { Command } from 'commander';
import { inPages } from '../../../core/pages.ts';
import type { UsageRow } from '../../../ports/store/usage.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { day } from '../option-values.ts';
import { turns } from '../receipt-line.ts';
import { oneLine } from '../terminal-text.ts';
import { usageLine } from '../usage-line.ts';

export function define(command: Command, cli: Cli): void {
  command
    .option('--since <day>', 'from this day on (UTC), as 2026-01-31', day)
    .action((filter: { since?: string }) => usage(filter, cli));
  addExamples(command, 'throughline usage', 'throughline usage --since 2026-01-01 --json');
}

async function usage({ since }: { since?: string }, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const filter = since === undefined ? {} : { since };
    let none = true;
    for await (const row of inPages<UsageRow>((last) => engine.usage({ ...filter, ...(last && { before: last }) }))) {
      none = false;
      if (output.json) output.value(row);
      else output.line(`${row.day}  ${oneLine(row.agent)}  ${turns(row.turns)}: ${usageLine(row.usage)}`);
    }
    if (none) output.note('Nothing was used.');
    return DONE;
  });
}
