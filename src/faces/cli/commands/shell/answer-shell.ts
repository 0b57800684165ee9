import type { Command } from 'commander';
import type { Cli } from '../../cli.ts';
import { cutTo, oneLine } from '../../terminal-text.ts';
import { type Completion, complete, type Sources } from './complete.ts';
import { parseLine, quotedFor } from './shell-words.ts';

/** The answer to a Tab in a shell, see completion.ts. After an error it prints nothing. */
export function define(command: Command, cli: Cli): void {
  command
    .argument('<shell>')
    .argument('[words...]')
    .action(async (shell: string, words: string[]) => {
      const lines = await (shell === 'bash' ? inBash(words, command, cli) : inZshOrFish(shell, words, command, cli));
      // One piece, and not line by line: names are cleaned already, and a backslash must stay.
      if (lines.length > 0) cli.output.line(lines.join('\n'));
    });
}

async function inBash([line = '', breaks = '']: readonly string[], command: Command, cli: Cli): Promise<string[]> {
  const typed = parseLine(line, breaks);
  const start = typed.before.findIndex((word) => !/^\w+=/.test(word));
  if (start === -1) return [];
  const { names, files } = await completed(typed.before.slice(start + 1), typed.current, command, cli);
  // Between double quotes, an interactive bash replaces `!` by an earlier command, and no quoting keeps it from that.
  const written = names.filter(({ name }) => typed.quote !== '"' || !name.includes('!'));
  return linesOf({ names: written, files }, ({ name }) => quotedFor(name, typed));
}

/** zsh has removed the quotes, fish has not. Both add them again. */
async function inZshOrFish(shell: string, words: readonly string[], command: Command, cli: Cli): Promise<string[]> {
  const before = words.slice(shell === 'fish' ? 1 : 0, -1);
  const typed = words.at(-1) ?? '';
  const current = shell === 'fish' ? parseLine(typed, '').current : typed;
  const found = await completed(before, current, command, cli);
  return linesOf(found, ({ name, about }) => (about === '' ? name : `${name}\t${about}`));
}

const LONGEST_ABOUT = 60;

function linesOf({ names, files }: Completion, written: (name: Completion['names'][number]) => string): string[] {
  if (files !== null) return [`:${files}`];
  const seen = new Map(names.filter(({ name }) => isOneLine(name)).map((name) => [name.name, name]));
  const short = (text: string) => cutTo(oneLine(text), LONGEST_ABOUT);
  return [':words', ...[...seen.values()].map(({ name, about }) => written({ name, about: short(about) }))];
}

/** Older versions accepted keys with control characters. */
function isOneLine(name: string): boolean {
  return oneLine(name) === name.replaceAll(/\s+/g, ' ').trim() && !/[\n\t]/.test(name);
}

/** How long to wait for a server. Data on this machine is read however long that takes. */
const SERVER_MS = 1_500;

async function completed(before: readonly string[], current: string, command: Command, cli: Cli): Promise<Completion> {
  const program = command.parent;
  const none: Completion = { names: [], files: null };
  if (program === null) return none;
  const sources: Sources = {
    names: (kind, line) => cli.parts.names({ ...cli.options, ...line }, kind, SERVER_MS),
    load: async (one) => (one.parent === program ? cli.load(one) : undefined),
  };
  return complete(program, before, current, sources).catch(() => none);
}
