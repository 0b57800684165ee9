import type { Command } from 'commander';
import type { ForkOptions } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { directory, positiveNumber } from '../../input.ts';
import { turns } from '../../lines.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation to copy: its key or id')
    .option('--turn <n>', 'the last turn to copy (default: all)', positiveNumber)
    .option('--key <new>', 'a key for the new conversation')
    .option('--title <text>', 'a title for the new conversation')
    .option('--cwd <dir>', 'where its agent works (default: where that of the original works)', directory)
    .action((key: string, flags: ForkOptions) => fork(key, flags, cli));
  addHelp(command, {
    about: 'Prints the key of the new conversation, or its id when it has no key.',
    examples: [
      'throughline fork notes --turn 2 --key notes-again',
      'throughline fork review --cwd ../other-checkout --json',
    ],
  });
}

async function fork(key: string, flags: ForkOptions, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const made = await engine.fork(key, flags);
    output.result(made, made.key ?? made.id);
    output.note(`forked with ${turns(made.historyCount)}`);
  });
}
