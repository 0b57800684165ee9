import type { Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';

export function define(command: Command, cli: Cli): void {
  command.action(() => link(cli));
  addHelp(command, {
    about:
      'The link comes from the running server of the data home. Whoever opens it can do everything, as the owner that the\n' +
      'server was started for. For other people, create a key instead ("throughline keys create").',
    examples: ['throughline link', 'xdg-open "$(throughline link --quiet)"'],
  });
}

async function link({ parts, output, options }: Cli): Promise<void> {
  const made = await parts.link(options);
  output.result(made, made.link);
  output.note('It signs one browser in, once, within 15 minutes.');
}
