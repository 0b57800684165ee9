import { closeSync, existsSync, linkSync, lstatSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hasCode, ThroughlineError, writeFault } from '../../../core/errors.ts';
import { Database } from '../file/database.ts';
import { storageFault, whileBusy } from '../file/faults.ts';
import { becomeAlone, syncToDisk } from '../file/upgrade.ts';
import { LOCK, planOf, type Replaced, readPlan, type Switch, writePlan } from './plan.ts';

/*
 * A restore replaces several things: the database, the files beside it, the directory of the sandboxes. No file system does that in one
 * step, so the renames are first written to a file beside the database (the plan):
 *
 *   no plan                nothing was replaced, or everything
 *   a plan, and its lock   a process is replacing them at this moment
 *   a plan, without lock   that process was killed. Whoever opens the database next completes the switch, and says so
 *
 * What is on disk shows which renames are done, so a switch can be killed and completed any number of times. If a rename fails, all of
 * them are undone. The new data is prepared in folders of the restore, which are removed after the plan.
 *
 * If not all of it is in the folder of the database, there is no plan: a killed switch is not completed.
 */

/** How long to wait for a process that uses the database, or that switches at this moment: renames take milliseconds. */
const WAIT_MS = 2_000;

/**
 * Replaces everything in the plan, or nothing. Returns the paths of what was there before. Throws `conflict` while another process has the
 * database open, and `refused` when something cannot be moved.
 */
export async function switchData(file: string, { folders, ...more }: Switch): Promise<string[]> {
  using _ = await lockFolder(folders[0]);
  const plan = { folders, ...more };
  const old = existsSync(file) ? await heldAlone(file) : null;
  try {
    for (const { kept } of plan.replaced) if (kept !== null) mkdirSync(dirname(kept), { recursive: true, mode: 0o700 });
    writePlan(planOf(file), plan);
    carryOut(file, plan);
  } finally {
    old?.close();
  }
  return keptBy(plan);
}

function keptBy({ replaced }: Switch): string[] {
  return replaced.flatMap(({ kept }) => (kept !== null && existsSync(kept) ? [kept] : []));
}

/** The backup whose restore was killed in the middle, or is under way; null: none. */
export function unfinishedSwitch(file: string): string | null {
  return readPlan(planOf(file))?.backup ?? null;
}

/**
 * Completes the switch that a killed restore left. Throws `storage_busy` while another process does so, `conflict` while one has the
 * database open, `refused` when it can only be undone, and `storage_damaged` when the plan is not valid.
 */
export async function finishSwitch(file: string, onNote?: (note: string) => void): Promise<void> {
  const at = planOf(file);
  const found = readPlan(at);
  if (found === null) return;
  using _ = await lockFolder(found.folders[0]);
  const plan = readPlan(at);
  if (plan === null) return void removeFolders(found); // another process has completed it meanwhile
  const old = existsSync(file) ? await heldAlone(file) : null;
  try {
    carryOut(file, plan);
  } finally {
    old?.close();
  }
  removeFolders(plan);
  const places = [...new Set(keptBy(plan).map(dirname))].join(' and ');
  const where = places === '' ? '' : ` What was there before is kept in ${places}.`;
  onNote?.(`The restore of ${plan.backup} was killed before its end, and is now complete.${where}`);
}

function removeFolders({ folders }: Switch): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

/** Under the lock. */
function carryOut(file: string, plan: Switch): void {
  try {
    for (const each of plan.replaced) checkPrepared(each);
    for (const each of plan.replaced) replace(each);
    for (const folder of foldersOf(plan)) syncToDisk(folder);
  } catch (error) {
    undo(file, plan, error);
    throw undone(plan, error);
  }
  removePlan(file);
}

function removePlan(file: string): void {
  const plan = planOf(file);
  rmSync(plan, { force: true });
  syncToDisk(dirname(plan));
}

function foldersOf({ replaced }: Switch): Set<string> {
  return new Set(replaced.flatMap(({ at, kept }) => [dirname(at), ...(kept === null ? [] : [dirname(kept)])]));
}

/** Somebody may have deleted the folders of a killed restore. */
function checkPrepared(each: Replaced): void {
  if (each.by === null || existsSync(each.by) || isReplaced(each)) return;
  throw new Error(`${each.by} was deleted`);
}

/** The old one is kept by a second link if possible, so that there is a database at every moment. */
function replace({ at, kept, by }: Replaced): void {
  if (kept !== null && !existsSync(kept) && existsSync(at)) {
    if (by === null || !lstatSync(at).isFile() || !isLinked(at, kept)) renameSync(at, kept);
  }
  if (by !== null && existsSync(by)) renameSync(by, at);
}

/** False: some file systems have no links. */
function isLinked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch {
    return false;
  }
}

function isReplaced({ at, kept, by }: Replaced): boolean {
  if (by === null || existsSync(by) || !existsSync(at)) return false;
  return kept === null || (existsSync(kept) && !isSame(at, kept));
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [statSync(one, { bigint: true }), statSync(other, { bigint: true })];
  return a.dev === b.dev && a.ino === b.ino;
}

/** Throws `refused` when a part cannot be moved back. Then the plan stays, and the next one tries to complete it. */
function undo(file: string, plan: Switch, error: unknown): void {
  try {
    for (const each of plan.replaced.toReversed()) putBack(each);
    for (const folder of foldersOf(plan)) syncToDisk(folder);
    removePlan(file);
  } catch (cause) {
    throw new ThroughlineError(
      'refused',
      `Cannot complete the restore of ${plan.backup}: ${reasonOf(error)}. It cannot be undone either: ${reasonOf(cause)}.`,
      {
        hint: `A part of the data is replaced. Correct this, and ${existsSync(planOf(file)) ? 'run any command: it completes the restore' : 'restore the backup again'}.`,
        cause,
      },
    );
  }
}

function putBack(each: Replaced): void {
  const { at, kept, by } = each;
  if (by !== null && isReplaced(each)) {
    mkdirSync(dirname(by), { recursive: true, mode: 0o700 });
    renameSync(at, by);
  }
  if (kept === null || !existsSync(kept)) return;
  // Of two links to one file, a rename keeps both.
  if (existsSync(at) && isSame(at, kept)) rmSync(kept);
  else renameSync(kept, at);
}

function undone({ backup }: Switch, error: unknown): ThroughlineError {
  return new ThroughlineError('refused', `Cannot restore ${backup}: ${reasonOf(error)}.`, {
    hint: 'Nothing was replaced. Correct this, and try again.',
    cause: error,
  });
}

function reasonOf(error: unknown): string {
  const { code, path, dest, message } = error as NodeJS.ErrnoException & { dest?: string };
  return dest === undefined ? message : `${path} cannot be moved to ${dest} (${code})`;
}

/** By a transaction of SQLite, which the system ends with its process, however that ends. */
async function lockFolder(folder: string): Promise<Disposable> {
  const db = new Database(lockOf(folder));
  try {
    await whileBusy(() => db.script('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE'), WAIT_MS);
  } catch (error) {
    db.close();
    if (!hasCode(error, 'storage_busy')) throw error;
    throw new ThroughlineError('storage_busy', 'Another process is restoring a backup.', {
      hint: 'Try again.',
      cause: error,
    });
  }
  return { [Symbol.dispose]: () => db.close() };
}

/** An existing file is not opened: closing it would give up a lock of our own. */
function lockOf(folder: string): string {
  const file = join(folder, LOCK);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    closeSync(openSync(file, 'wx', 0o600));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw writeFault(folder, cause) ?? cause;
  }
  return file;
}

/**
 * Without its log, so that nothing of it is written or deleted later, at a path that belongs to the new one then. Null: it is too
 * damaged to be opened.
 */
async function heldAlone(file: string): Promise<Database | null> {
  const db = new Database(file);
  try {
    await whileBusy(() => becomeAlone(db), WAIT_MS);
    db.script('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
    return db;
  } catch (error) {
    db.close();
    const fault = error instanceof ThroughlineError ? error : storageFault(error);
    const isDamaged = (error as NodeJS.ErrnoException).code === 'ERR_SQLITE_ERROR' && fault === null;
    if (isDamaged || fault?.code === 'storage_damaged') return null;
    if (fault?.code !== 'storage_busy') throw fault ?? error;
    throw new ThroughlineError('conflict', `Another process has ${file} open.`, {
      hint: 'Stop the server and all programs that use this data home, and try again. Nothing was changed.',
      cause: error,
    });
  }
}
