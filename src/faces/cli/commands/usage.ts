import type { Command } from 'commander';
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
    const rows = await engine.usage(since === undefined ? {} : { since });
    for (const row of rows) {
      if (output.json) output.value(row);
      else output.line(`${row.day}  ${oneLine(row.agent)}  ${turns(row.turns)}: ${usageLine(row.usage)}`);
    }
    if (rows.length === 0) output.note('Nothing was used.');
    return DONE;
  });
}
