import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { ASIDE, RESTORE_FOLDER } from '../../../core/directories.ts';
import { ThroughlineError } from '../../../core/errors.ts';
import { isObject } from '../../../core/turn/content.ts';
import { syncToDisk } from '../file/upgrade.ts';

/*
 * The plan of a switch, as a file beside the database. Its paths are relative to that folder and never lead out of it, so a data home
 * that was copied or moved completes its own restore, and a file that somebody else wrote changes nothing elsewhere.
 */

export interface Switch {
  /** The backup that is restored. */
  readonly backup: string;
  /** Where the new data was prepared. The first one also has the lock. */
  readonly folders: readonly [string, ...string[]];
  readonly replaced: readonly Replaced[];
}

export interface Replaced {
  readonly at: string;
  /** Where it is kept; null: nothing was there. */
  readonly kept: string | null;
  /** What comes to its place, on the same disk; null: nothing. */
  readonly by: string | null;
}

/** The lock of a switch, in its first folder. */
export const LOCK = 'lock';
const PLAN = '.restoring';

/** Beside the file itself, however it is called. */
export function planOf(file: string): string {
  return `${realFile(file)}${PLAN}`;
}

/** Also while there is no file: `realpath` needs one. */
export function realFile(file: string): string {
  if (existsSync(file)) return realpathSync.native(file);
  const folder = dirname(file);
  if (!existsSync(folder)) return file;
  const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return resolve(realpathSync.native(folder), isLink ? readlinkSync(file) : basename(file));
}

/**
 * It appears with its whole content, and on disk. Nothing is written when something is replaced outside of the folder of the database:
 * such a plan would not be accepted.
 */
export function writePlan(at: string, plan: Switch): void {
  const stored = mapPaths(plan, (path) => relative(dirname(at), realEntry(path)));
  if (!isValid(stored, dirname(at))) return;
  const draft = join(plan.folders[0], 'plan');
  const handle = openSync(draft, 'wx', 0o600);
  try {
    writeFileSync(handle, JSON.stringify(stored));
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(draft, at);
  try {
    syncToDisk(dirname(at));
  } catch (error) {
    rmSync(at);
    throw error;
  }
}

/** With absolute paths. Null: there is none. Throws `storage_damaged` when it may not be carried out. */
export function readPlan(at: string): Switch | null {
  if (!existsSync(at)) return null;
  try {
    const plan: unknown = JSON.parse(readFileSync(at, 'utf8'));
    if (!isValid(plan, dirname(at))) throw new Error('not the shape of a plan, or a path outside of its folder');
    return mapPaths(plan, (path) => join(dirname(at), path));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new ThroughlineError('storage_damaged', `${at} is not a valid plan of a restore.`, {
      hint: `Check this file or delete it, and restore the backup again. Replaced data is kept in the directory "${ASIDE}" beside it.`,
      cause,
    });
  }
}

function mapPaths({ backup, folders: [first, ...others], replaced }: Switch, map: (path: string) => string): Switch {
  const mapped = (path: string | null) => (path === null ? null : map(path));
  return {
    backup,
    folders: [map(first), ...others.map(map)],
    replaced: replaced.map(({ at, kept, by }) => ({ at: map(at), kept: mapped(kept), by: mapped(by) })),
  };
}

/** A link is replaced itself, and not what it refers to. */
function realEntry(path: string): string {
  return join(realpathSync.native(dirname(path)), basename(path));
}

function isValid(plan: unknown, folder: string): plan is Switch {
  if (!isObject(plan) || typeof plan.backup !== 'string') return false;
  const { folders, replaced } = plan;
  if (!Array.isArray(folders) || folders.length === 0 || !Array.isArray(replaced)) return false;
  const isFolder = (name: unknown) =>
    isPath(name) && !name.includes('/') && name.startsWith(RESTORE_FOLDER) && !isLinked(folder, join(name, LOCK));
  const isBelow = (path: unknown, names: readonly string[]) =>
    isPath(path) && names.some((name) => path.startsWith(`${name}/`)) && !isLinked(folder, dirname(path));
  const isData = (path: unknown) =>
    isPath(path) &&
    ![ASIDE, ...folders].some((name) => `${path}/`.startsWith(`${name}/`)) &&
    !isLinked(folder, dirname(path));
  const isReplaced = (each: unknown) =>
    isObject(each) &&
    isData(each.at) &&
    (each.kept === null || isBelow(each.kept, [ASIDE])) &&
    (each.by === null || isBelow(each.by, folders));
  return folders.every(isFolder) && replaced.every(isReplaced);
}

/** Relative, and without parts that lead elsewhere. An absolute path has an empty part. */
function isPath(path: unknown): path is string {
  return typeof path === 'string' && !path.includes('\0') && !path.split('/').some((part) => /^\.{0,2}$/.test(part));
}

/** Whether the path, or a directory on the way to it, is a link: it could lead out of the folder. */
function isLinked(folder: string, path: string): boolean {
  if (path === '.') return false;
  const found = lstatSync(join(folder, path), { throwIfNoEntry: false });
  return (found?.isSymbolicLink() ?? false) || isLinked(folder, dirname(path));
}
