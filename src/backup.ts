import { randomUUID } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  createWriteStream,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { ComposeOptions } from './compose.ts';
import { areHere, composeSandboxes, sandboxRoot } from './compose-sandboxes.ts';
import { ASIDE } from './core/directories.ts';
import { ThroughlineError, unreadable } from './core/errors.ts';
import { quotedPath } from './core/input/visible.ts';
import { systemClock } from './host/clock.ts';
import { createHome, makeRestoreFolder, restoreFolders } from './host/data-home.ts';
import { lockFile } from './host/file-lock.ts';
import { bootId } from './host/processes.ts';
import { reportNote } from './host/report.ts';
import { makeServerDirectory, serverFiles } from './host/server-files.ts';
import {
  namedStore,
  readSetup,
  type StoreAddress,
  storeAddress,
  storeFile,
  storeInWords,
} from './host/settings-file.ts';
import type {
  BackupContents,
  BackupMade,
  BackupRequest,
  Restored,
  RestoreRequest,
  StoreCopied,
  StoreCopyRequest,
  StoreReopened,
} from './ports/store/backup.ts';
import { kindOf, pack, packedSize, unpack } from './sandboxes/directory/archive.ts';
import { type Replaced, realFile } from './stores/sqlite/backup/plan.ts';
import { finishSwitch, switchData, unfinishedSwitch } from './stores/sqlite/backup/switch.ts';

/* Backups of a data home, restoring them, and copies to another store. A backup is one file: a copy of the database, or an archive of the database and the sandboxes. */

type Home = Pick<ComposeOptions, 'home' | 'config' | 'store'>;

/** The first entry of an archive. The other one is the directory of the sandboxes, under any name. */
const DATABASE = 'throughline.db';
const SANDBOXES = 'sandboxes';

/**
 * Makes a backup while the data home is in use. It appears under its name when it is complete, on disk and checked. Throws `conflict` when
 * the file exists, `not_found` when there is no data, `storage_full`, `storage_damaged`.
 */
export async function backupHome(request: Home & BackupRequest): Promise<BackupMade> {
  const { file, sandboxes } = request;
  const setup = readSetup(request);
  const source = storeFile(setup);
  checkTarget(file, request.force);
  checkNotTheData(file, setup.store);
  await finishSwitch(source, request.onNote);
  if (sandboxes && !areHere(setup)) {
    throw new ThroughlineError('refused', 'The sandboxes are on another machine, and cannot be put into a backup.', {
      hint: 'Leave out --sandboxes, and save them there.',
    });
  }
  if (!existsSync(source)) {
    throw new ThroughlineError('not_found', `There is no data in ${setup.home}.`, {
      hint: 'Name the data home with --home, or set THROUGHLINE_HOME.',
    });
  }
  if (sandboxes) await checkSpace(file, source, sandboxRoot(setup), request);
  return whole(file, async (draft) => {
    const { copyDatabase } = await import('./stores/sqlite/backup/copy.ts');
    if (!sandboxes) return { file, sandboxes, ...(await copyDatabase(source, draft, request)) };
    const folder = mkdtempSync(`${draft}.`);
    try {
      const contents = await copyDatabase(source, join(folder, DATABASE), request);
      await packSandboxes(draft, folder, sandboxRoot(setup), request);
      return { file, sandboxes, ...contents, bytes: statSync(draft).size };
    } finally {
      removeFolder(folder);
    }
  });
}

/** Before anything is written. Throws `storage_full` when the archive does not fit, and reports sparse files. */
async function checkSpace(file: string, source: string, root: string, request: BackupRequest): Promise<void> {
  if (!existsSync(root)) return;
  const { bytes, apparent, sparse, leavesOut } = await packedSize(root, request.signal);
  // The database is copied beside the archive first.
  const data = [source, `${source}-wal`].map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  const needed = bytes + 2 * data.reduce((sum, size) => sum + size);
  const { bavail, bsize } = statfsSync(dirname(file));
  const named = sparse.slice(0, MOST_NAMED).map(({ path, size }) => `${quotedPath(path)} (${inBytes(size)})`);
  const which = `${named.join(', ')}${sparse.length > MOST_NAMED ? ' and others' : ''}`;
  if (needed > bavail * bsize) {
    const free = `The backup with its sandboxes needs ${inBytes(needed)}, and ${inBytes(bavail * bsize)} are free on the disk of ${dirname(file)}.`;
    const sparseHint = `This tar writes the empty parts of sparse files: ${which}. Install GNU tar, or delete these files.`;
    throw new ThroughlineError('storage_full', `${free} Nothing was written.`, {
      hint: leavesOut || sparse.length === 0 ? 'Free some space there, or name a file on another disk.' : sparseHint,
    });
  }
  if (sparse.length === 0 || !leavesOut) return;
  const files = sparse.length === 1 ? '1 sparse file is' : `${sparse.length} sparse files are`;
  request.onNote?.(
    `${files} in the sandboxes: the archive has only the parts with content (${inBytes(bytes)} instead of ${inBytes(apparent)}). The largest: ${which}.`,
  );
}

/** How many sparse files a message names. */
const MOST_NAMED = 3;

const inBytes = (bytes: number) => (bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);

async function packSandboxes(draft: string, folder: string, root: string, request: BackupRequest): Promise<void> {
  request.onProgress?.({ step: 'sandboxes', done: 0, total: 1 });
  const isThere = existsSync(root);
  if (!isThere) mkdirSync(join(folder, SANDBOXES));
  const second = isThere ? ([dirname(root), basename(root)] as const) : ([folder, SANDBOXES] as const);
  closeSync(openSync(draft, 'wx', 0o600)); // tar would let everybody read it
  const said = await pack(draft, [[folder, DATABASE], second], request.signal);
  for (const line of said) request.onNote?.(line);
}

/** Writes a file under a temporary name until it is complete. The temporary file of a killed process stays, and can be deleted. */
async function whole<T>(file: string, write: (draft: string) => Promise<T>): Promise<T> {
  const draft = join(dirname(file), `.${basename(file)}.${randomUUID().slice(0, 8)}.partial`);
  try {
    const made = await write(draft);
    await synced(draft);
    renameSync(draft, file);
    await synced(dirname(file));
    return made;
  } catch (error) {
    throw cannotWrite(file, error);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Asynchronous: a disk may take long, and a server has other work. */
async function synced(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function cannotWrite(file: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === 'storage_full' || code === 'ENOSPC' || code === 'EDQUOT') {
    return new ThroughlineError('storage_full', `The disk of ${dirname(file)} is full.`, {
      hint: 'Nothing was changed. Free some space there, and try again.',
      cause: error,
    });
  }
  if (error instanceof ThroughlineError || syscall === undefined) return error;
  const hint = 'Name another file.';
  return new ThroughlineError('invalid', `Cannot write the file ${file} (${code}).`, { hint, cause: error });
}

/** Throws `conflict` when it exists. */
function checkTarget(file: string, force: boolean): void {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found === undefined || (force && found.isFile())) return;
  const what = found.isDirectory() ? 'is a directory' : 'exists already';
  throw new ThroughlineError('conflict', `${file} ${what}.`, {
    hint: found.isFile() ? 'Name another file, or replace it with --force.' : 'Name another file.',
  });
}

/** Replacing the data would take it away from a running server, and leave its WAL beside another database. */
function checkNotTheData(file: string, store: StoreAddress): void {
  if (store.kind !== 'sqlite') return;
  const source = store.file;
  const taken = ['', '-wal', '-shm', '.highwater'].map((end) => `${source}${end}`);
  if (!existsSync(file) || !taken.some((path) => existsSync(path) && realpathSync(path) === realpathSync(file))) return;
  throw new ThroughlineError('conflict', `${file} belongs to the data of ${dirname(source)}.`, {
    hint: 'Name another file, best on another disk.',
  });
}

/** Writes a backup that a server has made to a file, and checks it again. */
export function receiveBackup(
  request: Home & BackupRequest,
  read: () => AsyncIterable<Uint8Array>,
): Promise<BackupMade> {
  const { file, force, sandboxes } = request;
  if (sandboxes) {
    throw new ThroughlineError('invalid', 'A backup through a server cannot contain sandboxes.', {
      hint: 'Leave out --sandboxes, or run the command on the machine of the server.',
    });
  }
  checkTarget(file, force);
  checkNotTheData(file, readSetup(request).store);
  return whole(file, async (draft) => {
    await pipeline(read, createWriteStream(draft, { flags: 'wx', mode: 0o600 }));
    const { checkCopy } = await import('./stores/sqlite/backup/copy.ts');
    return { file, sandboxes, ...(await checkCopy(draft, 'What the server sent', request)) };
  });
}

/**
 * Makes a backup the data of a data home. The backup is checked before anything is changed, and the replaced data is kept. All of the data is
 * replaced, or nothing. Throws `conflict` while the data home is in use, and `storage_damaged`, `storage_newer` for a backup that
 * cannot be used.
 */
export async function restoreHome(request: Home & RestoreRequest): Promise<Restored> {
  const setup = readSetup(request);
  const kind = backupKind(request.file);
  checkWholeInItself(request.file);
  createHome(setup.home);
  const to = realFile(storeFile(setup));
  const at = serverFiles(setup.home);
  makeServerDirectory(at);
  const lock = lockFile(at.lock);
  if (lock === null) {
    throw new ThroughlineError('conflict', 'A server of this data home runs, or another backup is being restored.', {
      hint: 'Stop the server, or wait, and try again. Nothing was changed.',
    });
  }
  using cleanup = new DisposableStack();
  cleanup.defer(() => lock.release());
  await finishSwitch(to, reportNote);
  const root = sandboxRoot(setup);
  for (const left of restoreFolders([to, root])) removeFolder(left);
  // If the data could be replaced neither completely nor not at all, the next command needs them.
  const removePrepared = (path: string) => void (unfinishedSwitch(to) === null && removeFolder(path));
  const folder = cleanup.adopt(makeRestoreFolder(to), removePrepared);
  const draft = join(folder, DATABASE);
  const contents = await checkedCopy(request, kind, draft);
  const { makeOwn, replacedDatabase } = await import('./stores/sqlite/backup/restore.ts');
  const own = makeOwn(draft, composeSandboxes(setup).place, request);
  const sandboxes = kind === 'archive' ? [cleanup.adopt(makeRestoreFolder(root), removePrepared)] : [];
  const replaced: Replaced[] = [];
  for (const unpacked of sandboxes) replaced.push(await unpackSandboxes(request.file, unpacked, root));
  replaced.push(...replacedDatabase(to, draft, aside(to)));
  const kept = await switchData(to, { backup: request.file, folders: [folder, ...sandboxes], replaced });
  return { from: request.file, to, kept: kept.toReversed(), sandboxes: kind === 'archive', ...contents, ...own };
}

function removeFolder(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/** The check needs a writable file, and the backup may be on a read-only disk. So a copy is checked, and that copy is used. */
async function checkedCopy(request: RestoreRequest, kind: BackupKind, draft: string): Promise<BackupContents> {
  try {
    if (kind === 'database') copyFileSync(request.file, draft);
    else await unpack(request.file, dirname(draft), [DATABASE]);
  } catch (error) {
    throw cannotWrite(dirname(draft), error);
  }
  const { checkCopy } = await import('./stores/sqlite/backup/copy.ts');
  const contents = await checkCopy(draft, request.file, request);
  if (contents.broken.length === 0 || request.force) return contents;
  const [{ conversation = '', event = 0 } = {}] = contents.broken;
  const some = contents.broken.length;
  throw new ThroughlineError(
    'storage_damaged',
    `In ${request.file}, events of ${some === 1 ? 'one conversation' : `${some} conversations`} were changed: in ${conversation}, event ${event}.`,
    { hint: 'Use another backup, or restore this one anyway with --force. Nothing was changed.' },
  );
}

type BackupKind = NonNullable<ReturnType<typeof kindOf>>;

function backupKind(file: string): BackupKind {
  let kind: ReturnType<typeof kindOf>;
  try {
    kind = kindOf(file);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ThroughlineError(code === 'ENOENT' ? 'not_found' : 'invalid', unreadable('file', file, code), {
      cause,
    });
  }
  if (kind !== null) return kind;
  throw new ThroughlineError('invalid', `${file} is not a backup.`, {
    hint: 'Name a file that "throughline backup" wrote.',
  });
}

/** The newest data of a database that is in use, or whose process was killed, is in a file beside it. */
function checkWholeInItself(file: string): void {
  const beside = ['-wal', '-journal'].map((end) => `${file}${end}`);
  const log = beside.find((path) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0);
  if (log === undefined) return;
  throw new ThroughlineError('invalid', `${file} is not a backup: a part of its data is in ${log}.`, {
    hint: 'Make a backup of its data home with "throughline backup FILE --home DIR", and restore that. Nothing was changed.',
  });
}

async function unpackSandboxes(file: string, folder: string, root: string): Promise<Replaced> {
  await unpack(file, folder, ['--exclude', DATABASE]);
  const [name] = readdirSync(folder);
  return { at: root, kept: existsSync(root) ? aside(root) : null, by: name === undefined ? null : join(folder, name) };
}

/** Where replaced data is kept. */
function aside(path: string): string {
  const stamp = new Date(systemClock.now()).toISOString().slice(0, 19).replaceAll(':', '-');
  return join(dirname(path), ASIDE, `${basename(path)}.${stamp}-${randomUUID().slice(0, 4)}`);
}

/**
 * Copies everything from one store to another, or continues such a copy. The source may be in use. Throws `conflict` when the target has
 * other data or is in use, and `not_found` when there is no source.
 */
export async function copyStore({ from, to, ...options }: StoreCopyRequest): Promise<StoreCopied> {
  const [source, target] = [namedStore(from, 'FROM'), namedStore(to, 'TO')];
  if (source.kind === target.kind) throw sameKind(source.kind);
  if (source.kind === 'sqlite' && !existsSync(source.file)) {
    throw new ThroughlineError('not_found', `There is no data in ${source.file}.`);
  }
  if (target.home !== undefined) createHome(target.home);
  const [sqlite, postgres, { copyRows }] = await Promise.all([
    import('./stores/sqlite/copy-side.ts'),
    import('./stores/postgres/copy-side.ts'),
    import('./stores/shared/copy/copy.ts'),
  ]);
  const machine = machineParts();
  await using read =
    source.kind === 'sqlite'
      ? await sqlite.sqliteSource({ ...source, ...machine })
      : await postgres.postgresSource(source.url);
  await using written =
    target.kind === 'sqlite'
      ? await sqlite.sqliteTarget({ ...target, ...machine })
      : await postgres.postgresTarget(target.url);
  const copied = await copyRows(read, written, storeAddress(target), options);
  return { from: storeInWords(source), to: storeInWords(target), ...copied };
}

/**
 * For a store whose data was copied to another one: it can be used again. Throws `conflict` while it is in use, `refused` when it is itself an
 * unfinished copy, and `not_found`.
 */
export async function reopenStore(address: string): Promise<StoreReopened> {
  const store = namedStore(address, 'STORE');
  if (store.kind === 'sqlite' && !existsSync(store.file)) {
    throw new ThroughlineError('not_found', `There is no data in ${store.file}.`);
  }
  const [sqlite, postgres, { forgetSuccessor }] = await Promise.all([
    import('./stores/sqlite/copy-side.ts'),
    import('./stores/postgres/copy-side.ts'),
    import('./stores/shared/copy/copy.ts'),
  ]);
  await using side =
    store.kind === 'sqlite'
      ? await sqlite.sqliteTarget({ ...store, ...machineParts() })
      : await postgres.postgresTarget(store.url);
  return { store: storeInWords(store), successor: await forgetSuccessor(side) };
}

const machineParts = () => ({ clock: systemClock, boot: bootId(), onNote: reportNote });

function sameKind(kind: StoreAddress['kind']): ThroughlineError {
  return new ThroughlineError(
    'invalid',
    'Both stores are of the same kind: a copy goes from SQLite to PostgreSQL, or back.',
    {
      hint:
        kind === 'sqlite'
          ? 'Use "throughline backup" and "throughline restore".'
          : 'Use pg_dump and pg_restore, while no server runs.',
    },
  );
}
