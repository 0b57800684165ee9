import { lstatSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { jsonLine } from '../../../../core/input/visible.ts';
import type { Engine } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { turns } from '../../lines.ts';
import { markdownLines } from './markdown.ts';
import { partsIn } from './show.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--output <file>', 'write to this file, readable by you alone (default: stdout)')
    .option('--markdown', 'a document for people, which cannot be imported')
    .action((key: string, flags: ExportFlags) => exportTo(key, flags, cli));
  addHelp(command, {
    about:
      'In a Markdown document, prompts and answers are quoted (">"), and nothing else is: no answer can look like a turn or like a change of ' +
      'sessions. Each tool is one line, images are named, and attached files are included.',
    examples: [
      'throughline export notes --output notes.json',
      'throughline export notes --markdown --output notes.md',
      'throughline export notes | ssh elsewhere throughline import -',
    ],
  });
}

interface ExportFlags {
  readonly output?: string;
  readonly markdown?: boolean;
}

async function exportTo(key: string, { output: file, markdown }: ExportFlags, cli: Cli): Promise<void> {
  const { output, lookAt } = cli;
  if (markdown && output.json) {
    throw new ThroughlineError('invalid', '"--markdown" and "--json" cannot be used together.', {
      hint: 'Without "--markdown", the export is JSON.',
    });
  }
  await lookAt(async (engine) => {
    const { text, count } = markdown ? await asMarkdown(engine, key) : await asJson(engine, key);
    if (file !== undefined) await write(file, `${text}\n`);
    else output.line(text);
    output.note(`exported ${turns(count)}`);
  });
}

/** A whole conversation that can be imported. */
export async function asJson(engine: Engine, key: string) {
  const exported = await engine.export(key);
  return { text: jsonLine(exported), count: exported.records.length };
}

/** A document for people. */
export async function asMarkdown(engine: Engine, key: string) {
  const view = await engine.show(key);
  const lines = markdownLines(view, await partsIn(engine, view.conversation.id));
  return { text: lines.join('\n').trimEnd(), count: view.turns.length };
}

/** In a folder such as /tmp, another user may have made the file first, and could read it. Root's own are those such as /dev/stdout. */
async function write(file: string, text: string): Promise<void> {
  try {
    const found = lstatSync(file, { throwIfNoEntry: false });
    if (found !== undefined && ![0, process.getuid?.() ?? found.uid].includes(found.uid)) {
      throw new ThroughlineError('invalid', `The file ${file} belongs to another user.`, {
        hint: 'Name another file.',
      });
    }
    await writeFile(file, text, { mode: 0o600, flag: found === undefined ? 'wx' : 'w' });
  } catch (cause) {
    throw cause instanceof ThroughlineError ? cause : cannotWrite(file, cause);
  }
}

export function cannotWrite(file: string, cause: unknown): ThroughlineError {
  const { code } = cause as NodeJS.ErrnoException;
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  const hint = full ? 'Free some space there, and try again.' : 'Name another file.';
  const message = code === 'EEXIST' ? `The file ${file} exists already.` : `Cannot write the file ${file} (${code}).`;
  return new ThroughlineError(full ? 'storage_full' : 'invalid', message, { hint, cause });
}
