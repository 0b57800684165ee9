import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { directory, positiveNumber } from '../option-values.ts';
import { turns } from '../receipt-line.ts';

interface ForkFlags {
  readonly turn?: number;
  readonly key?: string;
  readonly title?: string;
  readonly cwd?: string;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation to start from: its key or id')
    .option('--turn <n>', 'the last turn to take along; else all', positiveNumber)
    .option('--key <new>', 'a key for the new conversation')
    .option('--title <text>', 'a title for it')
    .option('--cwd <dir>', 'where its agent works; else where the first one does', directory)
    .action((key: string, flags: ForkFlags) => fork(key, flags, cli));
  command.addHelpText('after', '\nPrints the key of the new conversation, or its id when it has none.');
  addExamples(
    command,
    'throughline fork notes --turn 2 --key notes-again',
    'throughline fork review --cwd ../other-checkout --json',
  );
}

async function fork(key: string, flags: ForkFlags, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const made = await engine.fork(key, flags);
    if (output.json) output.value(made);
    else output.line(made.key ?? made.id);
    output.note(`forked with ${turns(made.historyCount)}`);
    return DONE;
  });
}
