import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import type { ProcessIdentity } from '../../core/process.ts';

/*
 * Limits for all processes of a sandbox together: each sandbox has a control group. Root may create one, and a user to whom a part of the
 * tree was delegated (systemd's "Delegate").
 */

export interface GroupLimits {
  /** Threads count, too. */
  readonly processes?: number | undefined;
  readonly memoryMb?: number | undefined;
}

export interface ControlGroup {
  /** A process that writes its pid into these files joins the group, with everything that it starts. */
  readonly procs: readonly string[];
  /** Call it when everything in the group has ended. Never throws: a group that stays is removed when the next one is created. */
  remove(): Promise<void>;
}

export type Controller = 'pids' | 'memory';

/** Where groups of a controller can be created. */
export interface ControllerAt {
  readonly version: 1 | 2;
  readonly folder: string;
}

/** From /proc/self/cgroup and /proc/self/mountinfo. Null: there is no such controller here. */
export function controllerAt(controller: Controller, cgroup: string, mountinfo: string): ControllerAt | null {
  const ours = cgroup.split('\n').map((line) => /^\d+:([^:]*):(.*)$/.exec(line) ?? []);
  const own = ours.find(([, names = '']) => names.split(',').includes(controller))?.[2];
  const unified = ours.find(([, names]) => names === '')?.[2];
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root = '', point = ''] = before.split(' ');
    const [type, , options = ''] = after.split(' ');
    if (type === 'cgroup' && own !== undefined && options.split(',').includes(controller)) {
      return { version: 1, folder: folderAt(point, within(own, root)) };
    }
    if (type === 'cgroup2' && own === undefined && unified !== undefined) {
      const path = within(unified, root);
      // A group that has processes cannot have limited groups below it, so we use the one above ours, if there is one.
      return { version: 2, folder: folderAt(point, path === '/' ? path : dirname(path)) };
    }
  }
  return null;
}

function within(path: string, root: string): string {
  return path.startsWith(root) && root !== '/' ? path.slice(root.length) || '/' : path;
}

/** Without a slash at the end. */
function folderAt(point: string, path: string): string {
  return path === '/' ? point : join(point, path);
}

/** The files of a group that set its limits, and their content. */
export function limitFiles(
  version: 1 | 2,
  controller: Controller,
  { processes, memoryMb }: GroupLimits,
): [string, string][] {
  if (controller === 'pids') return processes === undefined ? [] : [['pids.max', String(processes)]];
  if (memoryMb === undefined) return [];
  const bytes = String(memoryMb * 2 ** 20);
  return version === 1 ? [['memory.limit_in_bytes', bytes]] : [['memory.max', bytes]];
}

/** Swapped memory is limited as well. Not every system has these files. */
const SWAP_FILES = { 1: 'memory.memsw.limit_in_bytes', 2: 'memory.swap.max' } as const;

/** Throws `refused` when a limit cannot be enforced here. Null: none was asked for. */
export function makeControlGroup(
  limits: GroupLimits,
  { self, identify }: { self: ProcessIdentity; identify: (pid: number) => ProcessIdentity | null },
): ControlGroup | null {
  const wanted = (['pids', 'memory'] as const).filter((one) => limitFiles(1, one, limits).length > 0);
  if (wanted.length === 0) return null;
  const [cgroup, mountinfo] = ['cgroup', 'mountinfo'].map((name) => readFileSync(`/proc/self/${name}`, 'utf8'));
  const name = `throughline-${self.pid}-${self.started}-${randomUUID()}`;
  const folders = new Set<string>();
  try {
    for (const controller of wanted) {
      const at = controllerAt(controller, cgroup ?? '', mountinfo ?? '');
      if (at === null) throw new Error(`there is no control group for ${controller}`);
      removeLeft(at.folder, identify);
      const folder = join(at.folder, name);
      folders.add(folder);
      limit(at, folder, controller, limits);
    }
  } catch (cause) {
    for (const folder of folders) removed(folder);
    throw notEnforced(wanted, cause as NodeJS.ErrnoException);
  }
  return {
    procs: [...folders].map((folder) => join(folder, 'cgroup.procs')),
    remove: async () => void (await Promise.all([...folders].map(removeSoon))),
  };
}

function limit(
  { version, folder: parent }: ControllerAt,
  folder: string,
  controller: Controller,
  limits: GroupLimits,
): void {
  mkdirSync(folder, { recursive: true });
  const files = limitFiles(version, controller, limits);
  try {
    for (const [name, value] of files) writeFileSync(join(folder, name), value);
  } catch (error) {
    if (version === 1 || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    // A group has only the controllers that the group above enables for it.
    writeFileSync(join(parent, 'cgroup.subtree_control'), `+${controller}`);
    for (const [name, value] of files) writeFileSync(join(folder, name), value);
  }
  if (controller !== 'memory') return;
  try {
    writeFileSync(join(folder, SWAP_FILES[version]), version === 1 ? (files[0]?.[1] ?? '') : '0');
  } catch {
    // This system does not count swapped memory.
  }
}

function notEnforced(wanted: readonly Controller[], cause: NodeJS.ErrnoException): ThroughlineError {
  const names = wanted.map((one) => (one === 'pids' ? '"sandbox.limits.processes"' : '"sandbox.limits.memoryMb"'));
  const why = cause.code ?? cause.message;
  return new ThroughlineError(
    'refused',
    `Cannot enforce ${names.join(' and ')} here: no control group can be created (${why}).`,
    {
      hint: 'Run as root, or in a group that was delegated to you ("systemd-run --user --scope -p Delegate=yes throughline …"), or leave the limit out.',
      cause,
    },
  );
}

/** Removes the groups of our processes that have ended. */
function removeLeft(parent: string, identify: (pid: number) => ProcessIdentity | null): void {
  for (const name of readdirSync(parent)) {
    const [, pid, started] = /^throughline-(\d+)-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && identify(Number(pid))?.started !== started) removed(join(parent, name));
  }
}

const REMOVE_MS = 2_000;

async function removeSoon(folder: string): Promise<void> {
  for (let waited = 0; !removed(folder) && waited < REMOVE_MS; waited += 50) await delay(50, undefined, { ref: false });
}

/** False: processes are still in it. */
function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
