import type { Command } from 'commander';
import type { Arrangement } from '../../../../core/conversation.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { oneLine } from '../../terminal-text.ts';

/** `throughline pin`. */
export const pin = {
  define: (command: Command, cli: Cli) =>
    define(command, cli, {
      change: (on) => ({ pinned: on }),
      words: ['pinned', 'not pinned any more'],
      about: 'A pinned conversation stays at the top of its project in the page. Nothing else changes.',
      examples: ['throughline pin notes', 'throughline pin notes --undo'],
    }),
};

/** `throughline put-away`. */
export const putAway = {
  define: (command: Command, cli: Cli) =>
    define(command, cli, {
      change: (on) => ({ putAway: on }),
      words: ['put away', 'in the list again'],
      about:
        'Lists leave out a conversation that was put away. Nothing else changes: it can be read, searched and continued as before, and its ' +
        'next prompt brings it back. ("throughline archive" is something else: it exports a conversation and erases it.)',
      examples: ['throughline put-away notes', 'throughline put-away notes --undo'],
    }),
};

interface Arranging {
  readonly change: (on: boolean) => Arrangement;
  /** What the conversation is then, and after `--undo`. */
  readonly words: readonly [string, string];
  readonly about: string;
  readonly examples: readonly string[];
}

function define(command: Command, { output, withEngine }: Cli, { change, words, about, examples }: Arranging): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--undo', 'undo it')
    .action((key: string, { undo = false }: { undo?: boolean }) =>
      withEngine(async (engine) => {
        const arranged = await engine.arrange(key, change(!undo));
        output.result(arranged, `${oneLine(key)} is ${words[undo ? 1 : 0]}`);
      }),
    );
  addHelp(command, { about, examples });
}
