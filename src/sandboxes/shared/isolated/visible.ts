import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ThroughlineError } from '../../../core/errors.ts';
import type { IsolationSettings } from '../../../core/sandbox/sandbox-settings.ts';
import type { Folder } from '../../../ports/sandbox.ts';
import type { LocalSandboxSettings } from '../local-sandbox.ts';

/* The files of this machine that an isolated agent sees, each at its own path. It sees no others. */

/** Absolute paths, links resolved; each has the same name inside and outside. */
export interface Visible {
  readonly write: readonly string[];
  readonly read: readonly string[];
  /** Folders that are empty in the sandbox, also where a folder above them is bound. */
  readonly hidden: readonly string[];
  /** Files that exist and cannot be changed, also where a folder above them can. */
  readonly fixed: readonly string[];
  /** Folders above `hidden` and `fixed`. They are mounted, so that an agent cannot rename them and put others in their place. */
  readonly held: readonly string[];
}

/** What agents must not see or change. */
export interface Protected {
  /** Folders, such as the data home. Agents see only what is bound below them. */
  readonly hidden: readonly string[];
  /** Files that decide how agents are started. Agents cannot change them, not even in the working directory. */
  readonly fixed: readonly string[];
}

export type Kind = 'write' | 'read' | 'hidden' | 'fixed' | 'held';

/** `binds`: see `bindsOf`. */
export function visibleOf(
  { work, state, around }: Pick<LocalSandboxSettings, 'work' | 'state' | 'around'>,
  home: string,
  binds: { readonly write: readonly string[]; readonly read: readonly string[] },
  secured: Protected,
): Visible {
  const hidden = secured.hidden.map(realIfThere);
  const named = [
    ...[...secured.fixed, ...(around?.fixed ?? [])].map(realIfThere),
    join(work, 'throughline.config.json'),
  ];
  const fixed = [...new Set(named)].filter(isFile);
  return {
    write: [work, state, home, ...(around?.write ?? []), ...binds.write],
    read: [...(around?.read ?? []).filter(existsWithoutLinks), ...binds.read],
    hidden,
    fixed,
    held: [...hidden, ...fixed].flatMap(foldersAbove).filter((path) => existsSync(path)),
  };
}

/** What is mounted where, each path once. Outer paths come first, so that none hides an inner one. */
export function mountedPaths(
  { write, read, hidden, fixed, held }: Visible,
  system: readonly string[] = [],
): Map<string, Kind> {
  const of = (kind: Kind, paths: readonly string[]) => paths.map((path) => ({ kind, path }));
  const all = [...of('write', write), ...of('read', read), ...of('hidden', hidden), ...of('fixed', fixed)];
  const mounted = new Map<string, Kind>(system.map((path) => [path, 'read']));
  for (const { kind, path } of [...all, ...of('held', held)].toSorted((a, b) => depth(a.path) - depth(b.path))) {
    if (isNeeded(kind, nearest(mounted, path)) && !(kind === 'held' && mounted.has(path))) mounted.set(path, kind);
  }
  return mounted;
}

/** What programs in the sandbox may do with a path without links. For code outside of the sandbox that does it for them. */
export function accessTo(visible: Visible, system: readonly string[] = []): (path: string) => 'write' | 'read' | null {
  const mounted = mountedPaths(visible, system);
  return (path) => {
    const kind = nearest(mounted, path);
    if (kind === undefined || kind === 'hidden') return null;
    return kind === 'write' || kind === 'held' ? 'write' : 'read';
  };
}

/** `around`: how the sandbox has the path already; undefined: not at all. */
function isNeeded(kind: Kind, around: Kind | undefined): boolean {
  const isWritten = around === 'write' || around === 'held';
  if (kind === 'hidden') return around !== undefined && around !== 'hidden';
  if (kind === 'fixed' || kind === 'held') return isWritten;
  if (kind === 'write') return !isWritten;
  return around === undefined || around === 'hidden';
}

/** How the innermost mounted folder that a path is in is mounted. */
export function nearest(mounted: ReadonlyMap<string, Kind>, path: string): Kind | undefined {
  const above = [...mounted.keys()].filter((one) => isBelow(path, one));
  const longest = above.toSorted((a, b) => b.length - a.length)[0];
  return longest === undefined ? undefined : mounted.get(longest);
}

/** That of "/a" is 2. */
export const depth = (path: string) => path.split('/').length;

/** Also true for the folder itself. */
export function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);
}

const NEVER = ['/', '/bin', '/boot', '/etc', '/lib', '/lib64', '/run', '/sbin', '/tmp', '/usr', '/var'];
const NEVER_BELOW = ['/dev', '/proc', '/sys'];

/** An agent that can write to such a folder could leave the sandbox. */
export function isOfSystem(work: string): boolean {
  return NEVER.includes(work) || NEVER_BELOW.some((folder) => isBelow(work, folder));
}

/** Throws `refused` for a working directory through which an agent could leave the sandbox. */
export function checkWork(work: string): void {
  if (!isOfSystem(work)) return;
  throw new ThroughlineError('refused', `An isolated agent cannot work in ${work}: it is a part of the system.`, {
    hint: 'Name a directory of your own, or leave it out.',
  });
}

/** The binds of the settings, links resolved. Throws `refused` for one that is missing. */
export function bindsOf({ binds }: IsolationSettings): { write: string[]; read: string[] } {
  const real = binds.map(({ path, write = false }) => {
    if (existsSync(path)) return { path: realpathSync(path), write };
    throw new ThroughlineError('refused', `${path} of "sandbox.binds" does not exist.`, {
      hint: 'Create it, or take it out of the settings.',
    });
  });
  const of = (isWritten: boolean) => real.filter(({ write }) => write === isWritten).map(({ path }) => path);
  return { write: of(true), read: of(false) };
}

/** Throws `refused` for a path through a link: an agent that works in the repository could have made it, to see what it leads to. */
function existsWithoutLinks(path: string): boolean {
  if (!existsSync(path)) return false;
  const real = realpathSync(path);
  if (real === path) return true;
  throw new ThroughlineError('refused', `The path ${path} contains a symbolic link: it leads to ${real}.`, {
    hint: 'Isolated agents cannot use a git repository with links in its git directory. Find out who made the link, and put back the file or folder that was there.',
  });
}

export function realIfThere(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [above, ...foldersAbove(above)];
}

export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** The folder with the limits of the sandbox. We use it from outside, where nothing is hidden or fixed. */
export function asSeen(folder: Folder, access: (path: string) => 'write' | 'read' | null): Folder {
  const check = (path: string, isWritten: boolean) => {
    const may = access(join(folder.path, path));
    if (may === 'write' || (may === 'read' && !isWritten)) return path;
    const why = may === null ? 'is not in the sandbox' : 'cannot be changed from the sandbox';
    throw new ThroughlineError('refused', `${join(folder.path, path)} ${why}.`);
  };
  const [read, written] = [(path: string) => check(path, false), (path: string) => check(path, true)];
  return {
    path: folder.path,
    stat: async (path) => folder.stat(read(path)),
    read: async (path, range) => folder.read(read(path), range),
    list: async (path) => folder.list(read(path)),
    space: async (path) => folder.space(read(path)),
    watch: async (path, changed) => folder.watch(read(path), changed),
    put: async (path, content) => folder.put(written(path), content),
    replace: async (path, content, options) => folder.replace(written(path), content, options),
    append: async (path, content) => folder.append(written(path), content),
    remove: async (path) => folder.remove(written(path)),
  };
}

export function isSeen(path: string, { write, read }: Visible): boolean {
  return [...write, ...read].some((folder) => isBelow(path, folder));
}

/** A folder of the sandbox, as its programs see it. Throws `refused` for one that they do not see. */
export function seenFolder(folder: Folder, visible: Visible, system: readonly string[] = []): Folder {
  if (isSeen(folder.path, visible)) return asSeen(folder, accessTo(visible, system));
  throw new ThroughlineError('refused', `${folder.path} is not in the sandbox.`, {
    hint: 'Add it to "sandbox.binds" of the settings, or let the agent use the home of its sandbox.',
  });
}
