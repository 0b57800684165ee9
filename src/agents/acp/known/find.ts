import { existsSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { isObject } from '../../../core/turn/content.ts';
import type { Installable } from '../../shared/install.ts';
import { runnable } from '../../shared/paths.ts';
import type { KnownAgent } from './description.ts';
import { KNOWN_AGENTS } from './known.ts';

/*
 * An agent is looked for in this order: the setting "command", the setting "package", Throughline's own packages, the folder that
 * `throughline agents install` fills, the folder for such agents in the data home, PATH. Never in the node_modules of a working directory: docs/decisions/0013.
 * Nothing is executed.
 */
export interface FindSettings {
  /** The name under which it is known; null: none, and it needs a `command`. */
  readonly known: string | null;
  readonly command?: readonly string[] | undefined;
  readonly package?: string | undefined;
  /** A folder of the data home where a person may install agents. Those that we install have folders of their own in it. */
  readonly installed: string;
  /** The value of the variable PATH. */
  readonly path: string;
  /** The folder of our own code; left out: this one. */
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
    return { problem: `The program ${program} was not found or is not executable`, hint: 'Check its "command".' };
  }
  const agent = known === null ? undefined : KNOWN_AGENTS[known];
  if (agent === undefined) {
    const names = Object.keys(KNOWN_AGENTS).join(', ');
    return { problem: 'It has no command', hint: `Set its "command". These agents are known by name: ${names}.` };
  }
  return findKnown(agent, settings);
}

function findKnown(agent: KnownAgent, settings: FindSettings): Found {
  const [program, ...args] = agent.command;
  for (const { name, folder, named } of placesOf(settings)) {
    const start = programIn(folder, agent.package, program);
    if (start !== null) return { command: [...start, ...args], where: `${start.at(-1)} (${name})` };
    // A place that the settings name is used or refused, never skipped (R7).
    if (named) return { problem: `There is no ${program} in ${folder}/node_modules`, hint: 'Check its "package".' };
  }
  const file = runnable(program, settings.path);
  if (file !== null) return { command: [file, ...args], where: `${file} (PATH)` };
  const packages = [agent.package, ...(agent.beside ?? [])].join(' ');
  return {
    problem: `The program "${program}" was not found`,
    hint: agent.install
      ? `Run "throughline agents install ${settings.known}", or set its "command".`
      : `Install it (npm install -g ${packages}), or set its "command".`,
  };
}

function* placesOf({ known, package: folder, installed, ours = import.meta.dirname }: FindSettings) {
  if (folder !== undefined) yield { name: 'the setting "package"', folder, named: true };
  // As Node finds packages for our own code: npm installs what is beside Throughline into a folder above it.
  for (let above = ours; above !== dirname(above); above = dirname(above)) {
    yield { name: "Throughline's own packages", folder: above, named: false };
  }
  yield { name: 'throughline agents install', folder: installFolder(installed, known ?? ''), named: false };
  yield { name: 'the data home', folder: installed, named: false };
}

/** The command for a program of a package. Scripts are run by the Node that runs us. Null: it is not there, or another version is. */
function programIn(folder: string, name: string, program: string, wanted?: string): string[] | null {
  const root = join(folder, 'node_modules', name);
  try {
    const { bin, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;
    if (wanted !== undefined && version !== wanted) return null;
    const file = isObject(bin) ? bin[program] : bin;
    if (typeof file !== 'string') return null;
    const path = join(root, file);
    if (!existsSync(path)) return null;
    return ['.js', '.mjs', '.cjs', '.ts'].includes(extname(path)) ? [process.execPath, path] : [path];
  } catch {
    return null;
  }
}

/** The folder that `throughline agents install NAME` fills. */
export function installFolder(installed: string, name: string): string {
  return join(installed, name);
}

/** What `throughline agents install NAME` installs; null: an agent that a person has to install, or none that is known. */
export function installableAgent(name: string): Installable | null {
  const { package: packageName, command, install } = (Object.hasOwn(KNOWN_AGENTS, name) && KNOWN_AGENTS[name]) || {};
  if (packageName === undefined || command === undefined || install === undefined) return null;
  return {
    agent: name,
    package: packageName,
    tested: install.tested,
    megabytes: install.megabytes,
    isInstalled: (folder, version) =>
      programIn(folder, packageName, command[0], version) !== null && install.isComplete(folder),
  };
}

/** The agents that can be installed by name. */
export const INSTALLABLE_AGENTS: readonly string[] = Object.keys(KNOWN_AGENTS).filter(
  (name) => installableAgent(name) !== null,
);

/** The agents known by name that are installed. Executes nothing. */
export function availableAgents(installed: string, path: string): string[] {
  return Object.keys(KNOWN_AGENTS).filter((known) => 'command' in findAgent({ known, installed, path }));
}
