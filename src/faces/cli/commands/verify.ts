import type { Command } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import { seqOf } from '../../../core/event.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';

interface Options {
  readonly head?: string;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--head <head>', 'a head that an earlier "verify" printed and that you kept elsewhere')
    .action((key: string, options: Options) => verify(key, options, cli));
  command.addHelpText(
    'after',
    '\nChecks the hash chain of the events. Ends with 1 when an event was changed, removed or added.\n' +
      'Whoever can write the database can also compute the chain again. To notice that, keep the head that is printed ' +
      'somewhere else, and give it with --head later.',
  );
  addExamples(command, 'throughline verify notes', 'throughline verify notes --head "$(cat notes.head)"');
}

async function verify(key: string, options: Options, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const check = await engine.verify(key, options);
    const { broken, head, kept } = check;
    const events = seqOf(head);
    const whole = broken === null && kept !== false;
    if (output.json) {
      // An erased conversation is known by its id alone.
      const conversation = await engine.conversation(key).then(
        ({ id }) => id,
        () => key,
      );
      output.value({ conversation, events, whole, firstBroken: broken, head, ...(kept !== undefined && { kept }) });
    }
    if (broken !== null) {
      throw new ThroughlineError(
        'storage_damaged',
        `The chain is broken at event ${broken}: it is not as it was written.`,
        {
          hint: 'Put back a copy of the data home from before, or export what can still be read.',
        },
      );
    }
    if (kept === false) {
      throw new ThroughlineError('storage_damaged', 'The chain does not contain the head that was given.', {
        hint: 'If it is a head of this conversation, somebody changed or removed events and computed the chain again.',
      });
    }
    if (!output.json) output.line(`whole: ${events} events\nhead: ${head}`);
    return DONE;
  });
}
