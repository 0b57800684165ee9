import type { Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command.argument('<key>', 'the conversation: its key or id').action((key: string) => kill(key, cli));
  addHelp(command, {
    about:
      'Ends the processes of its live sessions and prints the ids of these sessions. No prompt and no answer is lost: the next prompt ' +
      'restores the context, and its receipt says how. A turn that runs is interrupted.',
    examples: ['throughline kill notes', 'throughline kill notes --json'],
  });
}

async function kill(key: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const sessions = await engine.kill(key);
    await output.each(sessions, ({ id }) => output.line(oneLine(id)), 'There was no live session.');
    if (sessions.length > 0) output.note('session gone, nothing lost');
  });
}
