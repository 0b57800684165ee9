import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { allCommands, cliDocument, nameOf } from '../scripts/cli-document.js';
import { helpOf, wrapped } from '../src/faces/cli/cli.ts';

const commands = await allCommands();

test('docs/cli.md agrees with the help of the program; `npm run docs` writes it', async () => {
  expect(readFileSync(new URL('../docs/cli.md', import.meta.url), 'utf8')).toBe(await cliDocument());
});

describe.each(commands.map((command) => [nameOf(command), command] as const))('%s', (_, command) => {
  test('has a description, and describes its arguments and options', () => {
    expect(command.description()).toMatch(/^[A-Z].*\.$/s);
    for (const { description } of [...command.registeredArguments, ...command.options])
      expect(description).not.toBe('');
  });

  test('has examples, and they use only commands and options that exist', () => {
    const { examples = [] } = helpOf(command) ?? {};
    expect(examples.length).toBeGreaterThan(0);
    expect(examples.join('\n')).toContain(`throughline${command.parent === null ? '' : ` ${pathOf(command)}`}`);
    for (const example of examples) expect(unknownIn(example)).toEqual([]);
  });
});

test('help text is wrapped to the width of the terminal, but indented lines are not', () => {
  const indented = `  ${'as it is '.repeat(8)}`;
  const words = Array.from({ length: 12 }, () => 'word');
  const lines = [words.slice(0, 8).join(' '), words.slice(8).join(' '), indented, 'four'];
  expect(wrapped(`${words.join(' ')}\n${indented}\nfour`, 40)).toBe(lines.join('\n'));
});

/** The name of a command without that of the program. */
function pathOf(command: Command): string {
  const path = nameOf(command).split(' ').slice(1);
  return path.join(' ');
}

/** Every command and option in an example that the program does not have. */
function unknownIn(example: string): string[] {
  return example.split(/[|;(]|<\(/).flatMap((part) => {
    const [, rest] = /\bthroughline\s+(.*)$/.exec(part) ?? [];
    if (rest === undefined) return [];
    // Words after "--" belong to another program.
    const words = rest
      .replaceAll(/"[^"]*"|'[^']*'/g, 'TEXT')
      .replace(/ -- .*/, '')
      .split(/\s+/);
    let [command] = commands as [Command];
    const options = [...command.options];
    for (const word of words) {
      const next = command.commands.find((one) => one.name() === word);
      if (next === undefined) continue;
      command = next;
      options.push(...next.options);
    }
    const known = [...options.map(({ long }) => long), '--help', '--version'];
    const unknown = words.filter((word) => word.startsWith('--')).map((word) => word.split(/[=)]/)[0] ?? '');
    return [
      ...(command.parent === null && !words[0]?.startsWith('-') ? [rest] : []),
      ...unknown.filter((one) => !known.includes(one)),
    ];
  });
}
