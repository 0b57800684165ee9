import type { Command } from 'commander';
import { given } from '../../../../core/input/arguments.ts';
import type { PublicPermission } from '../../../../core/public/turn.ts';
import { inPages } from '../../../../flow/pages.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';
import { optionList } from './answers.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('[key]', 'only questions of this conversation: its key or id')
    .option('--all', 'include questions that were answered, denied or withdrawn')
    .action((key: string | undefined, { all }: { all?: boolean }) => permissions(key, all === true, cli));
  addHelp(command, {
    about: 'Answer a question with "throughline answer ID OPTION".',
    examples: ['throughline permissions', "throughline permissions notes --json | jq -r '.id'"],
  });
}

async function permissions(key: string | undefined, all: boolean, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const filter = { conversation: key, open: all ? undefined : true };
    const found = inPages<PublicPermission>((last) => engine.permissions(given({ ...filter, after: last?.id })));
    const show = ({ id, title, options, state, optionId, reason }: PublicPermission) => {
      const more = optionId ?? reason;
      const answer = state === 'open' ? optionList(options) : `${state}${more ? ` (${more})` : ''}`;
      output.line(styled('bold', id), `  ${oneLine(title, 'code')}: ${oneLine(answer, 'code')}`);
    };
    await output.each(found, show, all ? 'There are no questions.' : 'No question waits for an answer.');
  });
}
