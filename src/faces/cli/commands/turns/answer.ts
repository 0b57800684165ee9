import type { Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';
import { chooseOption, noSuchOption } from './answers.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<id>', 'the question: see "throughline permissions"')
    .argument('<option>', 'the id of an option, or allow or deny')
    .action((id: string, option: string) => answer(id, option, cli));
  addHelp(command, {
    about: 'If several people answer, the first answer counts.',
    examples: [
      'throughline answer 5f0c2d3e-8a4b-4c57-9d61-0f2a7b1c3d4e allow',
      "throughline answer $(throughline permissions notes --json | jq -r '.id') reject_once",
    ],
  });
}

async function answer(id: string, word: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const { options } = await engine.permission(id);
    const chosen = chooseOption(options, word);
    if (chosen === null) throw noSuchOption(options, word);
    const answered = await engine.answer(id, chosen.optionId, { from: 'command_line' });
    if (output.json) output.value(answered);
    else output.note(`answered: ${chosen.name}`);
  });
}
