// Writes docs/cli.md from the program itself: every command with its arguments, options, behaviour and examples.
// `npm run docs` runs it; test/cli-document.test.ts fails when the file is out of date.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { helpOf } from '../src/faces/cli/cli.ts';
import { createProgram, loadCommand } from '../src/faces/cli/program.ts';

/** @import { Command, Option } from 'commander' */
/** @import { Cli } from '../src/faces/cli/cli.ts' */

const FILE = fileURLToPath(new URL('../docs/cli.md', import.meta.url));

/** The program, and every command and subcommand that its help shows, completely loaded. */
export async function allCommands() {
  // No command is run, so nothing of it is used.
  const cli = /** @type {Cli} */ ({});
  const silent = () => {};
  const program = createProgram({
    ...{ version: '', writeOut: silent, writeErr: silent, begin: () => cli, acting: silent },
  });
  for (const command of program.commands) await loadCommand(command, cli);
  return [program, ...withSubcommands(program)];
}

/** @param {Command} parent @returns {Command[]} */
function withSubcommands(parent) {
  return visible(parent).flatMap((command) => [command, ...withSubcommands(command)]);
}

/** @param {Command} parent */
export function visible(parent) {
  return parent.createHelp().visibleCommands(parent);
}

/** @param {Command} command @returns {string} */
export function nameOf(command) {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

export async function cliDocument() {
  const [program, ...commands] = await allCommands();
  if (program === undefined) throw new Error('There is a program.');
  const index = visible(program).map((one) => `| [\`${one.name()}\`](#${anchorOf(one)}) | ${cell(one.summary())} |`);
  const lines = [
    '<!-- Written by `npm run docs` from the program itself. Change the command, not this file. -->',
    ...[
      '# The command line',
      '',
      ...sectionOf(program),
      '## Commands',
      '',
      '| command | what it does |',
      '|---|---|',
      ...index,
    ],
    ...commands.flatMap((one) => [
      '',
      `${one.parent === program ? '##' : '###'} ${nameOf(one)}`,
      '',
      ...sectionOf(one),
    ]),
  ];
  return `${lines
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trimEnd()}\n`;
}

/** @param {Command} command */
function sectionOf(command) {
  const { about, examples = [] } = helpOf(command) ?? {};
  const usage = `${nameOf(command)} ${command.usage()}`;
  const places = command.registeredArguments.map((place) => [
    `\`${place.required ? '<' : '['}${place.name()}${place.variadic ? '...' : ''}${place.required ? '>' : ']'}\``,
    [place.description, ...choices(place.argChoices)].join('; '),
  ]);
  const options = command.options
    .filter(({ hidden }) => !hidden)
    .map((option) => [
      `\`${option.flags}\``,
      [option.description, ...choices(option.argChoices), ...standard(option)].join('; '),
    ]);
  return [
    ...[command.description(), '', '```', usage, '```', ''],
    ...table(['argument', ''], places),
    ...table([command.parent === null ? 'option of every command' : 'option', ''], options),
    ...(about === undefined ? [] : [paragraphs(about), '']),
    ...(examples.length === 0 ? [] : ['```sh', ...examples, '```', '']),
  ];
}

/** @param {readonly string[] | undefined} words */
function choices(words) {
  return words === undefined ? [] : [`one of ${words.map((word) => `\`${word}\``).join(', ')}`];
}

/** @param {Option} option */
function standard({ defaultValue }) {
  return defaultValue === undefined ? [] : [`default: \`${[defaultValue].flat().join(',')}\``];
}

/** @param {readonly string[]} head @param {readonly (readonly string[])[]} rows */
function table(head, rows) {
  if (rows.length === 0) return [];
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), '|---|---|', ...rows.map(line), ''];
}

/** @param {string} text */
function cell(text) {
  return text.replaceAll('|', '\\|').replaceAll(/(?<!`[^`]*)<(?=[a-z])/g, '\\<');
}

/** Each line is a paragraph. Lines that begin with a space become a code block. @param {string} about */
function paragraphs(about) {
  const blocks = about.split('\n').map((line) => (line.startsWith(' ') ? `    ${line}` : `\n${cell(line)}\n`));
  return blocks.join('\n').trim();
}

/** The anchor that GitHub gives to the heading. @param {Command} command */
function anchorOf(command) {
  return nameOf(command).replaceAll(' ', '-');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(FILE, await cliDocument());
