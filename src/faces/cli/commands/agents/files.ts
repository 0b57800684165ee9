import type { Command } from 'commander';
import { quotedPath } from '../../../../core/input/visible.ts';
import { addHelp, type Cli } from '../../cli.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .argument('[text]', 'only paths that contain it')
    .action((key: string, text: string | undefined) => files(key, text ?? '', cli));
  addHelp(command, {
    about:
      'Lists files and folders in the directory of the conversation, to be named in a prompt: the best matches first, at most 100. Does ' +
      'not look into .git, node_modules and the like unless the text names them, and never follows links. Exit code 4: the directory is gone.',
    examples: [
      'throughline files notes',
      'throughline files notes readme',
      "throughline files notes src/ --json | jq -r '.paths[]'",
    ],
  });
}

async function files(key: string, match: string, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const found = await engine.files(key, { match });
    output.show(found, () => {
      for (const path of found.paths) output.line(quotedPath(path));
    });
    if (found.more) output.note('There are more files. Name a part of the path to see them.');
    if (found.paths.length === 0) output.note('No file matches.');
  });
}
