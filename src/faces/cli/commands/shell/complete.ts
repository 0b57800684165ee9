import type { Argument, Command, Option } from 'commander';
import type { Name, NameKind } from '../../../../core/input/names.ts';
import { expectedOf } from '../../names.ts';

/** What can stand at the cursor: names, or files that the shell itself completes. */
export interface Completion {
  readonly names: readonly Name[];
  readonly files: 'file' | 'directory' | null;
}

export interface Sources {
  /** The names of a kind; `line`: the options of the line that is typed, which may name another data home. */
  names(kind: NameKind, line: Readonly<Record<string, string>>): Promise<readonly Name[]>;
  /** Gives a command its arguments and options. */
  load(command: Command): Promise<void>;
}

const NOTHING: Completion = { names: [], files: null };

/** The state after reading some words of a line. */
interface Place {
  readonly command: Command;
  /** How many arguments the command already has. */
  readonly taken: number;
  /** The option whose value comes next; null: none. */
  readonly option: Option | null;
  readonly onlyArguments: boolean;
  readonly line: Readonly<Record<string, string>>;
}

/** What can follow the words `before` (without the program) and begins with `current`. */
export async function complete(
  program: Command,
  before: readonly string[],
  current: string,
  sources: Sources,
): Promise<Completion> {
  let place: Place = { command: program, taken: 0, option: null, onlyArguments: false, line: {} };
  for (const word of before[0] === 'help' ? before.slice(1) : before) place = await after(place, word, sources);
  const { names, files } = await at(place, current, sources);
  return { names: names.filter(({ name }) => name.startsWith(current) && name !== ''), files };
}

async function after(place: Place, word: string, { load }: Sources): Promise<Place> {
  const { command, option, onlyArguments, line } = place;
  if (option !== null) return { ...place, option: null, line: { ...line, [option.attributeName()]: word } };
  if (word === '--' && !onlyArguments) return { ...place, onlyArguments: true };
  if (word.startsWith('-') && word !== '-' && !onlyArguments) {
    const [flag = '', value] = word.split(/=(.*)/s);
    const found = optionsOf(command).find(({ long, short }) => flag === long || flag === short) ?? null;
    if (found === null) return place;
    const takes = found.required && value === undefined;
    const given = value === undefined ? line : { ...line, [found.attributeName()]: value };
    return { ...place, option: takes ? found : null, line: given };
  }
  const next = place.taken === 0 ? command.commands.find((one) => one.name() === word) : undefined;
  if (next === undefined) return { ...place, taken: place.taken + 1 };
  await load(next);
  return { ...place, command: next };
}

async function at(place: Place, current: string, sources: Sources): Promise<Completion> {
  const { command, option, onlyArguments, taken } = place;
  if (option !== null) return valuesOf(option, place, sources);
  if (current.startsWith('-') && !onlyArguments) {
    const [flag = '', value] = current.split(/=(.*)/s);
    return value === undefined ? optionNames(place) : valuesAfter(flag, place, sources);
  }
  const commands = taken === 0 ? command.createHelp().visibleCommands(command) : [];
  const argument =
    command.registeredArguments[taken] ?? command.registeredArguments.findLast(({ variadic }) => variadic);
  const own = argument === undefined ? NOTHING : await valuesOf(argument, place, sources);
  const subcommands = commands.map((one) => ({ name: one.name(), about: one.summary() }));
  return { names: [...subcommands, ...own.names], files: own.files };
}

/** `--agent=cl`: the whole word is replaced. */
async function valuesAfter(flag: string, place: Place, sources: Sources): Promise<Completion> {
  const option = optionsOf(place.command).find(({ long }) => long === flag);
  if (option === undefined || !option.required) return NOTHING;
  const { names } = await valuesOf(option, place, sources);
  return { names: names.map(({ name, about }) => ({ name: `${flag}=${name}`, about })), files: null };
}

async function valuesOf(what: Argument | Option, { line }: Place, sources: Sources): Promise<Completion> {
  if (what.argChoices !== undefined)
    return { names: what.argChoices.map((name) => ({ name, about: '' })), files: null };
  const expected = expectedOf(what);
  if (expected === null) return NOTHING;
  if (expected === 'file' || expected === 'directory') return { names: [], files: expected };
  return { names: await sources.names(expected, line), files: null };
}

function optionNames({ command }: Place): Completion {
  const wanted = optionsOf(command).filter(({ hidden }) => !hidden);
  const names = wanted.map(({ long, short, description }) => ({ name: long ?? short ?? '', about: description }));
  return { names: [...names, { name: '--help', about: 'print help' }], files: null };
}

/** Those of the command first, then those of every command. */
function optionsOf(command: Command): Option[] {
  return command.parent === null ? [...command.options] : [...command.options, ...optionsOf(command.parent)];
}
