import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';

export function define(command: Command, cli: Cli): void {
  command.action(() => link(cli));
  command.addHelpText(
    'after',
    '\nAsks the server that runs for the data home, with its token. Whoever opens the link acts for the owner that the server was\n' +
      'started for, with every scope: give others a key instead ("throughline keys create").',
  );
  addExamples(command, 'throughline link', 'xdg-open "$(throughline link --quiet)"');
}

async function link({ parts, output, options, exitWith }: Cli): Promise<void> {
  const made = await parts.link(options);
  if (output.json) output.value(made);
  else output.line(made.link);
  output.note('It signs a browser in: once, within 15 minutes.');
  exitWith(DONE);
}
