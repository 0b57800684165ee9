import type { Command } from 'commander';

/** Real commands under the help of one. */
export function addExamples(command: Command, ...lines: readonly string[]): void {
  command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`);
}
