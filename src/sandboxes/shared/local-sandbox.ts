import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';
import { identityOfLocal, localProcess } from '../../core/process.ts';
import type { HostProcesses } from '../../ports/processes.ts';
import type { OpenSandbox, Sandboxes } from '../../ports/sandbox.ts';
import { localFolder } from './local-folder.ts';
import { spawnInGroup } from './spawn.ts';

export interface LocalSandboxSettings {
  readonly id: string;
  /** Its own directory, with everything that we have created for it. */
  readonly folder: string;
  readonly work: string;
  readonly state: string;
  /** Other paths of this machine that an isolated agent needs; `fixed`: files that it must not change. Missing ones are left out. */
  readonly around?: {
    readonly write: readonly string[];
    readonly read: readonly string[];
    readonly fixed: readonly string[];
  };
  readonly processes: HostProcesses;
}

/** A sandbox whose files and programs are those of the machine that we run on. */
export function localSandbox({ id, work, state, processes }: Omit<LocalSandboxSettings, 'folder'>): OpenSandbox {
  const environment = () => allowedEnvironment(process.env);
  return {
    id,
    host: 'local',
    work,
    state,
    home: process.env.HOME ?? homedir(),
    get env() {
      return environment();
    },
    async folder(root) {
      if (!isAbsolute(root)) throw new ThroughlineError('refused', `${root} is not an absolute path.`);
      return localFolder(realPath(root));
    },
    realPath: async (path) => realPath(path),
    find: async (program) => findProgram(program, process.env.PATH ?? ''),
    spawn: (command, { cwd = work, env, partOf }) =>
      spawnInGroup(command, {
        cwd,
        env: { ...environment(), ...env },
        mark: partOf && identityOfLocal(partOf)?.mark,
        processes,
      }),
  };
}

/** Finds and ends programs that were started in sandboxes of this machine. */
export function localProcesses(processes: HostProcesses): Pick<Sandboxes, 'status' | 'end' | 'orphans'> {
  return {
    async status(process) {
      const identity = identityOfLocal(process);
      return identity === null ? 'unknown' : processes.status(identity);
    },
    async end(process) {
      const identity = identityOfLocal(process);
      return identity === null ? 'unknown' : processes.end(identity);
    },
    orphans: async () => (await processes.orphans()).map(localProcess),
  };
}

const ALLOWED = new Set(['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'TERM', 'TZ', 'TMPDIR']);

/** The part of our environment that every program may have. The rest can hold secrets. */
export function allowedEnvironment(ours: NodeJS.ProcessEnv): Record<string, string> {
  const allowed: Record<string, string> = {};
  for (const [name, value] of Object.entries(ours)) {
    if (value !== undefined && (ALLOWED.has(name) || name.startsWith('LC_'))) allowed[name] = value;
  }
  return allowed;
}

/** Relative entries of PATH are ignored: they mean another folder in every working directory. */
function findProgram(program: string, path: string): string | null {
  if (isAbsolute(program)) return isProgram(program) ? program : null;
  if (/[/\\]/.test(program) || program === '') return null;
  const found = path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, program));
  return found.find(isProgram) ?? null;
}

function isProgram(file: string): boolean {
  try {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return false;
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Resolves links as far as the path exists, so that it has the same name before an agent creates it and afterwards. */
function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}
