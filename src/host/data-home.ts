import { accessSync, constants, globSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { createDirectories, RESTORE_FOLDER } from '../core/directories.ts';
import { ThroughlineError, writeFault } from '../core/errors.ts';
import { checkText } from '../core/input/arguments.ts';
import { lockFile } from './file-lock.ts';
import { systemProcesses } from './processes.ts';
import { readAddress, serverFiles } from './server-files.ts';

/** The longest path on Linux. */
export const LONGEST_PATH = 4_096;

/** Where the data is kept: as the caller says, else in the usual place. An empty path would be the working directory, and is refused. */
export function dataHome(named?: string): string {
  return resolve(named === undefined ? usualHome() : checkText(named, 'data home', LONGEST_PATH));
}

function usualHome(): string {
  const { THROUGHLINE_HOME, XDG_DATA_HOME } = process.env;
  if (THROUGHLINE_HOME) return THROUGHLINE_HOME;
  if (XDG_DATA_HOME && isAbsolute(XDG_DATA_HOME)) return join(XDG_DATA_HOME, 'throughline');
  return join(userHome(), '.local', 'share', 'throughline');
}

function userHome(): string {
  try {
    // Some services start with an empty HOME. The data must not end up in whatever directory they run in.
    return homedir() || userInfo().homedir;
  } catch (cause) {
    // In a container, a user may be only a number.
    const hint = 'Say where to keep the data: with --home, or in THROUGHLINE_HOME.';
    throw new ThroughlineError('refused', 'This user has no home directory.', { hint, cause });
  }
}

/** Creates the data home, for this user alone. Throws `storage_readonly`, `storage_full`, and `refused` on a system that we cannot run on. */
export function createHome(home: string): void {
  if (process.platform === 'win32') {
    throw new ThroughlineError('refused', 'Throughline does not run on Windows.', {
      hint: 'Use it in WSL 2, or use a server elsewhere: --server, open({ server }), "throughline/client". See docs/platforms.md.',
    });
  }
  try {
    createDirectories(home, { statSync, mkdirSync });
  } catch (cause) {
    const hint = 'Name a directory that you can write to: with --home, or in THROUGHLINE_HOME.';
    throw (
      writeFault(home, cause) ??
      new ThroughlineError('storage_readonly', `Cannot create the data home ${home}.`, { hint, cause })
    );
  }
}

/** Why a file or directory of the data cannot be written; null: it can, or is not there yet. */
export function whyUnwritable(path: string): ThroughlineError | null {
  try {
    accessSync(path, constants.W_OK);
    return null;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    const hint = 'Make it writable for this user.';
    return (
      writeFault(path, cause) ??
      new ThroughlineError('storage_readonly', `Cannot write to ${path} (${code}).`, { hint, cause })
    );
  }
}

/*
 * A restore prepares the backup in a folder beside what it replaces, because a rename cannot cross disks. It holds the lock of the data
 * home. So while the lock is free, such a folder was left by a process that was killed.
 */

export const makeRestoreFolder = (replaced: string) => makeFolderBeside(replaced, RESTORE_FOLDER);

/** A new folder for this user alone. `start`: how its name begins. */
export function makeFolderBeside(path: string, start: string): string {
  const beside = dirname(path);
  try {
    createDirectories(beside, { statSync, mkdirSync });
    return mkdtempSync(join(beside, start));
  } catch (cause) {
    const hint = 'Make it writable for this user, or keep the data elsewhere: --home, or THROUGHLINE_HOME.';
    throw (
      writeFault(beside, cause) ??
      new ThroughlineError('storage_readonly', `Cannot create a directory in ${beside}.`, { hint, cause })
    );
  }
}

/** The folders of restores beside what they replace. If the caller holds the lock, all of them are left over. */
export function restoreFolders(replaced: readonly string[]): string[] {
  return [...new Set(replaced.flatMap((path) => globSync(join(dirname(path), `${RESTORE_FOLDER}*`))))];
}

/** Null: a restore runs, so one of them is in use. */
export function leftRestoreFolders(home: string, replaced: readonly string[]): string[] | null {
  const found = restoreFolders(replaced);
  return found.length === 0 || !isRestoring(home) ? found : null;
}

/** Throws `conflict` when a restore has started meanwhile. */
export function removeRestoreFolder(home: string, folder: string): void {
  if (isRestoring(home)) throw new ThroughlineError('conflict', 'A backup is being restored.');
  rmSync(folder, { recursive: true, force: true });
}

/** The lock is held by a restore, or by a server. A running server has written its address. */
function isRestoring(home: string): boolean {
  const files = serverFiles(home);
  const lock = lockFile(files.lock);
  lock?.release();
  if (lock !== null) return false;
  const server = readAddress(files);
  return server === null || systemProcesses.status(server.process) !== 'alive';
}
