import type { Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .argument('<title...>', 'its new title')
    .action((key: string, title: string[]) => rename(key, title.join(' '), cli));
  addHelp(command, {
    about: 'Only the title changes: the key and the id stay.',
    examples: ['throughline rename notes "Notes of January"', 'throughline rename ticket-4711 Broken build on Mondays'],
  });
}

async function rename(key: string, title: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const renamed = await engine.rename(key, title);
    output.result(renamed, renamed.title);
  });
}
