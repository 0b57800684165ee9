import type { Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';

export function define(command: Command, cli: Cli): void {
  command.argument('<key>', 'the conversation: its key or id').action((key: string) => move(key, cli));
  addHelp(command, {
    about:
      'For a conversation whose data home or machine no longer exists. It continues here (with a server: on that server), in an empty sandbox ' +
      'of its own. Its files and its directory stay where they were. The next turn restores the context from the record, and its receipt says ' +
      'that the files are missing. Refused while a process still runs in the old place. ' +
      'To keep the conversation where it is and continue a copy here, fork it. See docs/deploy.md.',
    examples: ['throughline move notes', 'throughline move ticket-4711 --server https://agents.example.org'],
  });
}

async function move(key: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const moved = await engine.move(key);
    output.result(moved, moved.key ?? moved.id);
    output.note('It continues here. Its files stay where they were.');
  });
}
