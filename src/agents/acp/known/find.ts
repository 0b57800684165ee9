import { existsSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { isObject } from '../../../core/content.ts';
import { runnable } from '../../shared/paths.ts';
import { KNOWN_AGENTS, type KnownAgent } from './known.ts';

/*
 * Where an agent is: the setting "command", the setting "package", Throughline's own packages, the folder for such agents in the
 * data home, PATH. The node_modules of a working directory are not looked at: docs/decisions/0013.
 * Places are looked at, never executed.
 */
export interface FindSettings {
  /** What the agent is known as; null: it is not, and `command` says all. */
  readonly known: string | null;
  readonly command?: readonly string[] | undefined;
  readonly package?: string | undefined;
  /** A folder of the data home into which a person may install them. */
  readonly installed: string;
  /** Where programs are looked for, as the variable PATH has it. */
  readonly path: string;
  /** Where our own code lies; left out: here. */
  readonly ours?: string | undefined;
}

export type Found =
  | { readonly command: readonly string[]; readonly where: string }
  | { readonly problem: string; readonly hint: string };

export function findAgent(settings: FindSettings): Found {
  const { command, known, path } = settings;
  if (command !== undefined) {
    const [program = '', ...args] = command;
    const file = runnable(program, path);
    if (file !== null) return { command: [file, ...args], where: `${file} (the setting "command")` };
    return { problem: `The program ${program} was not found, or may not be executed`, hint: 'Check its "command".' };
  }
  const agent = known === null ? undefined : KNOWN_AGENTS[known];
  if (agent === undefined) {
    const names = Object.keys(KNOWN_AGENTS).join(', ');
    return { problem: 'Nothing says how it is started', hint: `Set its "command"; known by name are ${names}.` };
  }
  return findKnown(agent, settings);
}

function findKnown(agent: KnownAgent, settings: FindSettings): Found {
  const [program, ...args] = agent.command;
  for (const { name, folder, named } of placesOf(settings)) {
    const start = programIn(folder, agent.package, program);
    if (start !== null) return { command: [...start, ...args], where: `${start.at(-1)} (${name})` };
    // What the caller named is used or refused, never passed over.
    if (named) return { problem: `There is no ${program} in ${folder}/node_modules`, hint: 'Check its "package".' };
  }
  const file = runnable(program, settings.path);
  if (file !== null) return { command: [file, ...args], where: `${file} (PATH)` };
  const packages = [agent.package, ...(agent.beside ?? [])].join(' ');
  return {
    problem: `The program "${program}" was not found`,
    hint: `Install it (npm install -g ${packages}), or set its "command".`,
  };
}

function* placesOf({ package: folder, installed, ours = import.meta.dirname }: FindSettings) {
  if (folder !== undefined) yield { name: 'the setting "package"', folder, named: true };
  // As Node finds them for our own code: npm puts what is installed beside Throughline into a folder above it.
  for (let above = ours; above !== dirname(above); above = dirname(above)) {
    yield { name: "Throughline's own packages", folder: above, named: false };
  }
  yield { name: 'the data home', folder: installed, named: false };
}

/** How a package's program is started: a script of Node's by the Node that runs us, whatever PATH has. Null: not there. */
function programIn(folder: string, name: string, program: string): string[] | null {
  const root = join(folder, 'node_modules', name);
  try {
    const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin?: unknown };
    const file = isObject(bin) ? bin[program] : bin;
    if (typeof file !== 'string') return null;
    const path = join(root, file);
    if (!existsSync(path)) return null;
    return ['.js', '.mjs', '.cjs', '.ts'].includes(extname(path)) ? [process.execPath, path] : [path];
  } catch {
    return null;
  }
}

/** The agents known by name whose programs are here. Only looks at files. */
export function availableAgents(installed: string, path: string): string[] {
  return Object.keys(KNOWN_AGENTS).filter((known) => 'command' in findAgent({ known, installed, path }));
}
