import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { addHelp, type Cli } from '../../cli.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--yes', 'confirm: this cannot be undone')
    .action((key: string, { yes = false }: { yes?: boolean }) => erase(key, yes, cli));
  addHelp(command, {
    about:
      'Deletes prompts, answers, receipts, copies of sessions and the texts of its tasks. The numbers and times of its events\n' +
      'stay, so that "throughline verify ID" can still check them. The agents\' own files are not touched.',
    examples: ['throughline erase notes --yes', 'throughline erase notes --yes --json'],
  });
}

async function erase(key: string, yes: boolean, { output, withEngine }: Cli): Promise<void> {
  if (!yes) {
    throw new ThroughlineError('invalid', 'Erasing cannot be undone.', { hint: 'Add --yes to confirm.' });
  }
  await withEngine(async (engine) => {
    const { id } = await engine.conversation(key);
    await engine.erase(id);
    output.result({ erased: id }, `Erased ${key}. Its id was ${id}.`);
  });
}
