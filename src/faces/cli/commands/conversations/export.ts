import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { jsonLine } from '../../../../core/input/visible.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { turns } from '../../lines.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--output <file>', 'write to this file, readable by you alone (default: stdout)')
    .action((key: string, { output }: { output?: string }) => exportTo(key, output, cli));
  addHelp(command, {
    examples: [
      'throughline export notes --output notes.json',
      'throughline export notes | ssh elsewhere throughline import -',
    ],
  });
}

async function exportTo(key: string, file: string | undefined, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async (engine) => {
    const exported = await engine.export(key);
    if (file === undefined) output.value(exported);
    else await write(file, `${jsonLine(exported)}\n`);
    output.note(`exported ${turns(exported.records.length)}`);
  });
}

async function write(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600 });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const full = code === 'ENOSPC' || code === 'EDQUOT';
    throw new ThroughlineError(full ? 'storage_full' : 'invalid', `Cannot write the file ${file} (${code}).`, {
      cause,
    });
  }
}
