// The files and programs of an agent are used through its sandbox, which may be on another machine. So these folders must not use this machine.
import { importsOf, isTest } from './import-rules.ts';

const FOLDERS = ['agents/', 'engine/', 'tasks/'];
const HOST = ['fs', 'fs/promises', 'child_process', 'os'].flatMap((name) => [`node:${name}`, name]);

/** Files that use this machine, and why. Add a file only if what it uses is not part of an agent in a sandbox. */
export const USES_OF_HOST: Readonly<Record<string, string>> = {
  'agents/acp/known/memory.ts': 'stores what was learnt about agents in the data home',
  'agents/acp/known/packages.ts': 'finds the packages that a person has installed here, if the settings have no agent',
  'agents/claude/find/package.ts':
    'finds the SDK, which is loaded into our own process, and the packages that a person has installed here',
  'agents/claude/settings.ts': 'checks whether a person has installed another Claude into the data home',
  'agents/shared/install.ts': 'installs packages into the data home when a person asks for it; no agent runs',
  'agents/shared/paths.ts': 'looks for programs where no sandbox is open yet: when agents are listed without settings',
  'engine/starts.ts': 'counts the processors',
  'tasks/task-file.ts': 'reads a file that a person names on the command line',
};

/** The modules of this machine that the file imports, though it should use a sandbox. */
export function usesOfHost(path: string, source: string): string[] {
  if (isTest(path) || !FOLDERS.some((folder) => path.startsWith(folder))) return [];
  const used = importsOf(path, source).filter((name) => name !== undefined && HOST.includes(name));
  return used.map((name) => `imports ${name}`);
}
