import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isObject } from '../../../core/turn/content.ts';
import type { Installable } from '../../shared/install.ts';
import { onPath } from '../../shared/paths.ts';
import { KNOWN_AGENTS } from './known.ts';

/*
 * Packages of agents: where they may be, which of them we install, and which of them this machine has. Nothing is executed. find.ts looks
 * for the program that is started, in the sandbox.
 */

export interface PackagePlaces {
  /** The name under which the agent is known; null: none. */
  readonly known: string | null;
  readonly package?: string | undefined;
  /** A folder of the data home where a person may install agents. Those that we install have folders of their own in it. */
  readonly installed: string;
  /** The folder of our own code; left out: this one. */
  readonly ours?: string | undefined;
}

/** The folders whose node_modules may have the agent's package, in the order of precedence. */
export function* placesOf({ known, package: folder, installed, ours = import.meta.dirname }: PackagePlaces) {
  if (folder !== undefined) yield { name: 'the setting "package"', folder, named: true };
  // As Node finds packages for our own code: npm installs packages beside Throughline into a folder above it.
  for (let above = ours; above !== dirname(above); above = dirname(above)) {
    yield { name: "Throughline's own packages", folder: above, named: false };
  }
  yield { name: 'throughline agents install', folder: installFolder(installed, known ?? ''), named: false };
  yield { name: 'the data home', folder: installed, named: false };
}

/** The file of a program, as the manifest of its package names it. Null: it names none. */
export function programFile(manifest: unknown, program: string): string | null {
  const { bin } = isObject(manifest) ? manifest : {};
  const file = isObject(bin) ? bin[program] : bin;
  return typeof file === 'string' ? file : null;
}

/** Whether the folder's node_modules has the program of an agent. `version`: and this version of its package. */
function hasProgram(folder: string, agent: string, version?: string): boolean {
  const { package: name, command } = KNOWN_AGENTS[agent] ?? {};
  if (name === undefined || command === undefined) return false;
  const root = join(folder, 'node_modules', name);
  const manifestFile = join(root, 'package.json');
  // Most folders do not have it. A command waits for this look, and an exception takes longer than the question.
  if (!existsSync(manifestFile)) return false;
  try {
    const manifest: unknown = JSON.parse(readFileSync(manifestFile, 'utf8'));
    const file = programFile(manifest, command[0]);
    const isWanted = version === undefined || (isObject(manifest) && manifest.version === version);
    return isWanted && file !== null && existsSync(join(root, file));
  } catch {
    return false;
  }
}

/** The folder that `throughline agents install NAME` fills. */
export function installFolder(installed: string, name: string): string {
  return join(installed, name);
}

/** What `throughline agents install NAME` installs; null: a person has to install the agent, or it is not known. */
export function installableAgent(name: string): Installable | null {
  const { package: packageName, install } = (Object.hasOwn(KNOWN_AGENTS, name) && KNOWN_AGENTS[name]) || {};
  if (packageName === undefined || install === undefined) return null;
  return {
    agent: name,
    package: packageName,
    tested: install.tested,
    megabytes: install.megabytes,
    isInstalled: (folder, version) =>
      hasProgram(folder, name, version) && existsSync(join(folder, 'node_modules', install.needs, 'package.json')),
  };
}

/** The agents that can be installed by name. */
export const INSTALLABLE_AGENTS: readonly string[] = Object.keys(KNOWN_AGENTS).filter(
  (name) => installableAgent(name) !== null,
);

/** The agents known by name that this machine has, for a person who has configured none. */
export function availableAgents(installed: string, path: string): string[] {
  const folders = [...placesOf({ known: null, installed })].map(({ folder }) => folder);
  // A command waits for this, and most folders have no packages.
  const withPackages = folders.filter((folder) => existsSync(join(folder, 'node_modules')));
  const isAvailable = (known: string, program: string) =>
    [...withPackages, installFolder(installed, known)].some((folder) => hasProgram(folder, known)) ||
    onPath(program, path) !== null;
  return Object.entries(KNOWN_AGENTS).flatMap(([known, { command }]) => (isAvailable(known, command[0]) ? known : []));
}
