import type { Command } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--yes', 'yes, for good')
    .action((key: string, { yes = false }: { yes?: boolean }) => erase(key, yes, cli));
  command.addHelpText(
    'after',
    '\nPrompts, answers, receipts, copies of sessions and the words of its tasks are gone for good; numbers and times of its\n' +
      'events stay, so that "throughline verify ID" can still check them. What agents have written themselves is not touched.',
  );
  addExamples(command, 'throughline erase notes --yes', 'throughline erase notes --yes --json');
}

async function erase(key: string, yes: boolean, { output, withEngine }: Cli): Promise<void> {
  if (!yes) {
    throw new ThroughlineError('invalid', 'What is erased does not come back.', { hint: 'Add --yes if you mean it.' });
  }
  await withEngine(async (engine) => {
    const { id } = await engine.conversation(key);
    await engine.erase(id);
    if (output.json) output.value({ erased: id });
    else output.line(`${key} is erased; it was ${id}.`);
    return DONE;
  });
}
