import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import type { ImportOptions } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { directory, readInput } from '../../input.ts';
import { turns } from '../../lines.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<file>', 'what "throughline export" wrote, or a JSON list of messages {role, content}; - reads stdin')
    .option('--key <new>', 'another key than the exported one')
    .option('--agent <agent>', 'for messages: the agent that continues (default: the default agent)')
    .option('--cwd <dir>', 'where its agent works (default: a directory of its own)', directory)
    .action((file: string, flags: ImportOptions) => importFrom(file, flags, cli));
  addHelp(command, {
    about:
      'Prints the key of the new conversation, or its id when it has no key. Sessions are not copied: the first turn here ' +
      'restores the context in a new session. Messages are those of the AI SDK, OpenAI or Anthropic, without system messages.',
    examples: [
      'throughline import notes.json',
      'throughline import messages.json --key notes --agent claude',
      'throughline import - --key notes-copy < notes.json',
    ],
  });
}

async function importFrom(file: string, flags: ImportOptions, { output, withEngine }: Cli): Promise<void> {
  const value = parseJson(await readInput(file, output), file);
  await withEngine(async (engine) => {
    const made = await engine.import(value, flags);
    output.result(made, made.key ?? made.id);
    output.note(`imported ${turns(made.historyCount)}`);
  });
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const name = file === '-' ? 'The input' : `The file ${file}`;
    throw new ThroughlineError('invalid', `${name} is not valid JSON.`, {
      hint: 'Import what "throughline export" wrote, or a JSON list of messages.',
      cause,
    });
  }
}
