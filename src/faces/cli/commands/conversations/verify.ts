import type { Command } from 'commander';
import { RESTORE_HINT, ThroughlineError } from '../../../../core/errors.ts';
import { seqOf } from '../../../../core/event.ts';
import { given } from '../../../../core/input/arguments.ts';
import { ACKNOWLEDGE_LOSS, lostInWords } from '../../../../core/loss.ts';
import { addHelp, type Cli } from '../../cli.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--head <head>', 'a head that an earlier "verify" printed and that you kept elsewhere')
    .action((key: string, flags: { head?: string }) => verify(key, flags, cli));
  addHelp(command, {
    about:
      'Checks the hash chain of the events. Exit code 1: an event was changed, removed or added, or stored events are missing. ' +
      'A person who can write to the database can also compute the chain again. To detect that, keep the printed head in another ' +
      'place, and give it with --head later.',
    examples: ['throughline verify notes', 'throughline verify notes --head "$(cat notes.head)"'],
  });
}

async function verify(key: string, flags: { head?: string }, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const { broken, head, kept, lost } = await engine.verify(key, flags);
    const events = seqOf(head);
    const intact = broken === null && kept !== false && lost === undefined;
    if (output.json) {
      // An erased conversation is known by its id alone.
      const conversationId = await engine.conversation(key).then(
        ({ id }) => id,
        () => key,
      );
      output.value({ conversationId, events, intact, firstBroken: broken, head, ...given({ kept, lost }) });
    }
    if (broken !== null) {
      throw new ThroughlineError('storage_damaged', `Event ${broken} was changed after it was written.`, {
        hint: `${RESTORE_HINT} Or export what can still be read.`,
      });
    }
    if (lost !== undefined) throw new ThroughlineError('storage_lost', lostInWords(lost), { hint: ACKNOWLEDGE_LOSS });
    if (kept === false) {
      throw new ThroughlineError('storage_damaged', 'The chain does not contain the head that was given.', {
        hint: 'If it is a head of this conversation, somebody changed or removed events and computed the chain again.',
      });
    }
    if (!output.json) output.line(`intact: ${events} events\nhead: ${head}`);
  });
}
