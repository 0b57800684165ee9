import type { Command } from 'commander';
import { promptText } from '../../../core/content.ts';
import type { ConversationView } from '../../../ports/engine.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { showForPeople } from '../show-for-people.ts';

export function define(command: Command, cli: Cli): void {
  command.argument('<key>', 'the conversation: its key or id').action((key: string) => show(key, cli));
  command.addHelpText(
    'after',
    '\nTurns with who answered, and between them the seams: where one session ended and another began, and how.\n' +
      'With --json one object {conversation, turns, sessions, receipts}; a turn has its `prompt` as the content blocks\n' +
      'that were given, and as text in `promptText`.',
  );
  addExamples(command, 'throughline show notes', "throughline show notes --json | jq '.receipts[-1]'");
}

async function show(key: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const view = await engine.show(key);
    if (output.json) output.value(withTexts(view));
    else showForPeople(view, output);
    return DONE;
  });
}

function withTexts(view: ConversationView) {
  return { ...view, turns: view.turns.map((turn) => ({ ...turn, promptText: promptText(turn.prompt) })) };
}
