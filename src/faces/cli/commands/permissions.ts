import type { Command } from 'commander';
import { inPages } from '../../../core/pages.ts';
import type { PublicPermission } from '../../../core/public/turn.ts';
import { optionList } from '../choose-option.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { styled } from '../output.ts';
import { oneLine } from '../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('[key]', 'only of this conversation: its key or id')
    .option('--all', 'also those that were answered or withdrawn')
    .action((key: string | undefined, { all }: { all?: boolean }) => permissions(key, all === true, cli));
  addExamples(command, 'throughline permissions', "throughline permissions notes --json | jq -r '.id'");
}

async function permissions(key: string | undefined, all: boolean, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const filter = { ...(key !== undefined && { conversation: key }), ...(!all && { open: true }) };
    const found = inPages<PublicPermission>((last) =>
      engine.permissions({ ...filter, ...(last && { after: last.id }) }),
    );
    let none = true;
    for await (const permission of found) {
      none = false;
      if (output.json) {
        output.value(permission);
        continue;
      }
      const { id, title, options, state, optionId } = permission;
      const answer = state === 'open' ? optionList(options) : `${state}${optionId ? ` (${optionId})` : ''}`;
      output.line(styled('bold', id), `  ${oneLine(title)}: ${oneLine(answer)}`);
    }
    if (none) output.note(all ? 'No question was asked.' : 'No question is open.');
    return DONE;
  });
}
