import type { Command } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';

export function define(command: Command, cli: Cli): void {
  command.argument('<key>', 'the conversation: its key or id').action((key: string) => verify(key, cli));
  command.addHelpText(
    'after',
    '\nWalks the chain of events. Ends with 1 when an event was changed, removed or put in.',
  );
  addExamples(command, 'throughline verify notes', 'throughline verify notes --json && echo whole');
}

async function verify(key: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const { id, lastSeq } = await engine.conversation(key);
    const broken = await engine.verify(id);
    if (output.json) output.value({ conversation: id, events: lastSeq, whole: broken === null, firstBroken: broken });
    if (broken !== null) {
      throw new ThroughlineError(
        'storage_damaged',
        `The chain is broken at event ${broken}: it is not as it was written.`,
        {
          hint: 'Put back a copy of the data home from before, or export what can still be read.',
        },
      );
    }
    if (!output.json) output.line(`whole: ${lastSeq} events`);
    return DONE;
  });
}
