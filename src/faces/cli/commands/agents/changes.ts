import type { Command } from 'commander';
import type { ChangedFile } from '../../../../core/changes.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { counted } from '../../lines.ts';
import { styled } from '../../output.ts';
import { oneLine, stripControls } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--patch', 'also the changed lines')
    .action((key: string, flags: { patch?: boolean }) => changes(key, flags, cli));
  addHelp(command, {
    about:
      'Compares the directory of the conversation with the last commit of the git repository that it is in, and lists files that git does ' +
      'not know. Runs nothing that the repository names: no hooks, filters or external diffs. Exit code 4: there is no repository.',
    examples: [
      'throughline changes notes',
      'throughline changes notes --patch',
      "throughline changes notes --json | jq -r '.files[].path'",
    ],
  });
}

async function changes(key: string, { patch = false }: { patch?: boolean }, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const found = await engine.changes(key);
    if (output.json) {
      output.value(found);
      return undefined;
    }
    for (const file of found.files) {
      output.line(styled('bold', oneLine(file.path)), `  ${file.change}${linesOf(file)}`);
      if (patch && file.patch !== null) output.line(stripControls(file.patch.trimEnd()));
    }
    if (found.more > 0) output.note(`And at least ${counted(found.more, 'more file')}.`);
    if (found.files.length === 0) output.note('Nothing has changed since the last commit.');
    return undefined;
  });
}

function linesOf({ added, removed }: ChangedFile): string {
  return added === null ? '' : `, +${added} -${removed}`;
}
