import type { Command } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE } from '../exit-codes.ts';
import { directory } from '../option-values.ts';
import { readInput } from '../read-input.ts';
import { turns } from '../receipt-line.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<file>', 'what "throughline export" wrote; - reads it from stdin')
    .option('--key <new>', 'another key than the one it had')
    .option('--cwd <dir>', 'where its agent works; else in a sandbox of its own', directory)
    .action((file: string, flags: { key?: string; cwd?: string }) => importFrom(file, flags, cli));
  command.addHelpText(
    'after',
    '\nPrints the key of the new conversation, or its id when it has none. Its sessions stay where they were.',
  );
  addExamples(command, 'throughline import notes.json', 'throughline import - --key notes-copy < notes.json');
}

async function importFrom(
  file: string,
  flags: { key?: string; cwd?: string },
  { output, withEngine }: Cli,
): Promise<void> {
  const value = parseJson(await readInput(file), file);
  await withEngine(async (engine) => {
    const made = await engine.import(value, flags);
    if (output.json) output.value(made);
    else output.line(made.key ?? made.id);
    output.note(`imported ${turns(made.historyCount)}`);
    return DONE;
  });
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const name = file === '-' ? 'The input' : `The file ${file}`;
    throw new ThroughlineError('invalid', `${name} is not JSON.`, {
      hint: 'Import what "throughline export" wrote.',
      cause,
    });
  }
}
