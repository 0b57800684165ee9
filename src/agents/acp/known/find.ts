import { extname, join, posix } from 'node:path';
import { INSTALL_COMMANDS } from '../../../core/public/agents.ts';
import type { OpenSandbox } from '../../../ports/sandbox.ts';
import { programOn } from '../../shared/programs.ts';
import type { KnownAgent } from './description.ts';
import { KNOWN_AGENTS } from './known.ts';
import { type PackagePlaces, placesOf, programFile } from './packages.ts';
import { nodeIn } from './surroundings.ts';

/*
 * An agent is looked for in the sandbox that it will run in, in this order: the setting "command", the setting "package", Throughline's
 * own packages, the folder that `throughline agents install` fills, the folder for such agents in the data home, PATH. Never in the
 * node_modules of a working directory: docs/decisions/0013. Nothing is executed.
 */
export interface FindSettings extends PackagePlaces {
  readonly command?: readonly string[] | undefined;
  /** The PATH that the settings set. Left out: that of the sandbox. */
  readonly path?: string | undefined;
}

export type Found =
  | { readonly command: readonly string[]; readonly where: string }
  | { readonly problem: string; readonly hint: string };

export async function findAgent(settings: FindSettings, sandbox: OpenSandbox): Promise<Found> {
  const { command, known, path } = settings;
  if (command !== undefined) {
    const [program = '', ...args] = command;
    const file = await programOn(sandbox, program, path);
    if (file !== null) return { command: [file, ...args], where: `${file} (the setting "command")` };
    return { problem: `The program ${program} was not found or is not executable`, hint: 'Check its "command".' };
  }
  const agent = known === null ? undefined : KNOWN_AGENTS[known];
  if (agent === undefined) {
    const names = Object.keys(KNOWN_AGENTS).join(', ');
    return { problem: 'It has no command', hint: `Set its "command". These agents are known by name: ${names}.` };
  }
  return findKnown(agent, settings, sandbox);
}

async function findKnown(agent: KnownAgent, settings: FindSettings, sandbox: OpenSandbox): Promise<Found> {
  const [program, ...args] = agent.command;
  for (const { name, folder, named } of placesOf(settings)) {
    const start = await startIn(join(folder, 'node_modules', agent.package), program, sandbox);
    if (start !== null) return { command: [...start, ...args], where: `${start.at(-1)} (${name})` };
    // A place that the settings name is used or refused, never skipped (R7).
    if (named) return { problem: `There is no ${program} in ${folder}/node_modules`, hint: 'Check its "package".' };
  }
  const file = await programOn(sandbox, program, settings.path);
  if (file !== null) return { command: [file, ...args], where: `${file} (PATH)` };
  return {
    problem: `The program "${program}" was not found`,
    hint: `Run "${INSTALL_COMMANDS[settings.known ?? '']}", or set its "command".`,
  };
}

const MOST_MANIFEST_BYTES = 1024 * 1024;

/** The command for a program of a package. Scripts are run by Node. Null: the sandbox does not have it. */
async function startIn(root: string, program: string, sandbox: OpenSandbox): Promise<string[] | null> {
  try {
    const folder = await sandbox.folder(root);
    const manifest = await folder.read('package.json', { most: MOST_MANIFEST_BYTES });
    const file = manifest && programFile(JSON.parse(Buffer.from(manifest.bytes).toString('utf8')), program);
    if (file === null || (await folder.stat(posix.normalize(file)))?.kind !== 'file') return null;
    const path = join(root, file);
    if (!['.js', '.mjs', '.cjs', '.ts'].includes(extname(path))) return [path];
    const node = await nodeIn(sandbox);
    return node === null ? null : [node, path];
  } catch {
    return null;
  }
}
