import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import type { ProcessIdentity } from '../../core/process.ts';

/*
 * Limits that hold for all processes of a sandbox together: a control group each. Root may make them, and whoever was given a part of
 * the tree (systemd's "Delegate").
 */

export interface GroupLimits {
  /** Threads count, too. */
  readonly processes?: number | undefined;
  readonly memoryMb?: number | undefined;
}

export interface ControlGroup {
  /** A process that writes its number into these files is in it, with everything that it starts. */
  readonly procs: readonly string[];
  /** When everything in it has ended. Never throws: what is left is removed when the next one is made. */
  remove(): Promise<void>;
}

export type Controller = 'pids' | 'memory';

/** Where a controller's groups can be made. */
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
      // A group with processes of its own cannot have limited groups below it: so beside ours, if there is one.
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

/** What is written into a group. */
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

/** What takes memory out of the count: not every system has it. */
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
    // Groups below have only the controllers that the one above passes on.
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
    `Cannot enforce ${names.join(' and ')} here: no control group can be made (${why}).`,
    {
      hint: 'Run as root, or in a group that was delegated to you ("systemd-run --user --scope -p Delegate=yes throughline …"), or leave the limit out.',
      cause,
    },
  );
}

/** What processes of ours left behind that are gone. */
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

/** False: something is in it. */
function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
