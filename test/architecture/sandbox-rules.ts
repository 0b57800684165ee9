// The files and programs of an agent are used through its sandbox, which may be on another machine. So these folders must not use this machine.
import { isBuiltin } from 'node:module';
import { isTest, outlineOf } from './outline.ts';

const FOLDERS = ['agents/', 'engine/', 'tasks/'];
/** Modules of Node that compute or wait, and use nothing of this machine. */
const ELSEWHERE = [
  ...['assert', 'async_hooks', 'buffer', 'crypto', 'events', 'path', 'stream', 'stream/promises', 'string_decoder'],
  ...['timers', 'timers/promises', 'url', 'util', 'zlib'],
];
/** The engine and tasks do not know whether a path is of this machine: they use `posix` only. */
const WITHOUT_PATH = ['engine/', 'tasks/'];

/**
 * What files use of this machine, and why: modules, and members of `process` (`process.*`: all of it). Add a use only if it is not part
 * of an agent in a sandbox.
 */
export const USES_OF_HOST: Readonly<Record<string, { uses: readonly string[]; why: string }>> = {
  'agents/acp/adapter.ts': { uses: ['process.env'], why: 'the variables that an agent gets, if none are injected' },
  'agents/acp/known/codex.ts': {
    uses: ['process.arch', 'process.platform'],
    why: 'the name of the package that a person has installed here',
  },
  'agents/acp/known/packages.ts': {
    uses: ['node:fs'],
    why: 'finds the packages that a person has installed here, if the settings have no agent',
  },
  'agents/acp/known/surroundings.ts': {
    uses: ['process.execPath'],
    why: 'asks the sandbox whether it has the Node that runs Throughline',
  },
  'agents/claude/find/package.ts': {
    uses: ['node:fs', 'node:module', 'process.arch', 'process.platform', 'process.report'],
    why: 'finds the SDK, which is loaded into our own process, and the packages that a person has installed here',
  },
  'agents/claude/sdk/sdk.ts': { uses: ['node:module'], why: 'loads the SDK into our own process' },
  'agents/claude/settings.ts': {
    uses: ['node:fs', 'process.env'],
    why: 'checks whether a person has installed another Claude into the data home; variables as for ACP',
  },
  'agents/scripted/adapter.ts': {
    uses: ['process.execPath'],
    why: 'asks the sandbox whether it has the Node that runs Throughline',
  },
  'agents/shared/install.ts': {
    uses: ['node:child_process', 'node:fs', 'process.arch', 'process.platform'],
    why: 'installs packages into the data home when a person asks for it; no agent runs',
  },
  'agents/shared/learnt-file.ts': {
    uses: ['node:fs', 'process.pid'],
    why: 'stores what was learnt about agents in the data home',
  },
  'agents/shared/paths.ts': {
    uses: ['node:fs', 'process.platform'],
    why: 'looks for programs where no sandbox is open yet: when agents are listed without settings',
  },
  'engine/starts.ts': { uses: ['node:os'], why: 'counts the processors' },
  'tasks/task-file.ts': {
    uses: ['node:fs', 'node:path'],
    why: 'reads a file that a person names on the command line',
  },
};

/**
 * What the file uses of this machine, though it should use a sandbox. Not seen: what packages do, and the other files that it imports
 * (the import rules limit these).
 */
export function usesOfHost(path: string, source: string): string[] {
  if (isTest(path) || !FOLDERS.some((folder) => path.startsWith(folder))) return [];
  const { imports, globals } = outlineOf(path, source);
  const modules = imports.flatMap(({ module = '', names }) => {
    const bare = module.replace(/^node:/, '');
    // An import of `process` counts as the global.
    if (!isBuiltin(module) || bare === 'process') return [];
    const isLocalPath = bare === 'path' && !(names?.every((name) => name === 'posix') ?? false);
    if (isLocalPath && WITHOUT_PATH.some((folder) => path.startsWith(folder))) return ['node:path'];
    return ELSEWHERE.includes(bare) ? [] : [`node:${bare.split('/')[0]}`];
  });
  const members = globals.flatMap(({ name, how }) => {
    if (name === 'globalThis') return ['globalThis'];
    return name !== 'process' || how === 'nextTick' ? [] : [`process.${how ?? '*'}`];
  });
  return [...new Set([...modules, ...members])].toSorted();
}

/** Every use of this machine that is not named here, and every name without such a use. */
export function faultsOfHostUses(files: readonly (readonly [path: string, source: string])[]): string[] {
  const used = new Map(files.map(([path, source]) => [path, usesOfHost(path, source)]));
  return [
    ...[...used].flatMap(([path, uses]) => {
      const unnamed = uses.filter((use) => !USES_OF_HOST[path]?.uses.includes(use));
      return unnamed.map((use) => `${path} uses ${use}, and not a sandbox`);
    }),
    ...Object.entries(USES_OF_HOST).flatMap(([path, { uses }]) => {
      const unused = uses.filter((use) => !used.get(path)?.includes(use));
      return unused.map((use) => `${path} is named for ${use}, and does not use it`);
    }),
  ];
}
