import { randomUUID } from 'node:crypto';
import {
  accessSync,
  type BigIntStats,
  closeSync,
  constants,
  type Dirent,
  type FSWatcher,
  fchmodSync,
  fstatSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  statfsSync,
  unlinkSync,
  watch as watchFolder,
  writeSync,
} from 'node:fs';
import { opendir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { ThroughlineError } from '../../core/errors.ts';
import type { Entry, FileRead, FileStat, Folder, Range, Space, Watch } from '../../ports/sandbox.ts';
import { type Opened, type Opener, openerIn, openFolder } from './opened.ts';

/*
 * A folder of this machine's file system.
 *
 * Short calls are synchronous: the files of a turn are in the page cache, and reading them is faster than starting an asynchronous
 * read. A long read is done in pieces, and lets others run between them.
 */

const PIECE_BYTES = 1024 * 1024;
const MOST_ENTRIES = 100_000;
/** Of writing into a folder that is removed meanwhile. */
const MOST_TRIES = 5;
/** How often a watched file is checked, because the system does not report all changes (network file systems, a missing folder). */
const LOOK_MS = 200;

/** `root`: an absolute path without links. `procfs`: see `openerIn`. */
export function localFolder(root: string, procfs?: boolean): Folder {
  return new LocalFolder(root, openerIn(root, procfs));
}

class LocalFolder implements Folder {
  readonly path: string;
  readonly #opener: Opener;

  constructor(root: string, opener: Opener) {
    this.path = root;
    this.#opener = opener;
  }

  async stat(path: string): Promise<FileStat | null> {
    return this.#use(path, 'inspected', (opened) => describe(opened.stat()));
  }

  async read(path: string, { from = 0, most }: Range): Promise<FileRead | null> {
    const fd = this.#use(path, 'read', (opened) => this.#reopen(opened, path, constants.O_RDONLY));
    if (fd === null) return null;
    try {
      const stats = fstatSync(fd, { bigint: true });
      const length = Math.max(0, Math.min(most, Number(stats.size) - from));
      return { ...describe(stats), bytes: await readPart(fd, from, length) };
    } catch (error) {
      throw fileError(this.#at(path), 'read', error);
    } finally {
      closeSync(fd);
    }
  }

  async list(path: string): Promise<Entry[] | null> {
    const folder = this.#folder(this.#at(path), null);
    if (folder === null) return null;
    try {
      const entries: Entry[] = [];
      for await (const entry of await opendir(folder.path, { bufferSize: 512 })) {
        if (entries.length === MOST_ENTRIES) throw new ThroughlineError('too_large', `${path} has too many entries.`);
        entries.push({ name: entry.name, kind: kindOf(entry) });
      }
      return entries;
    } catch (error) {
      throw fileError(this.#at(path), 'listed', error);
    } finally {
      folder.close();
    }
  }

  async space(path: string): Promise<Space | null> {
    const folder = this.#folder(this.#at(path), null);
    if (folder === null) return null;
    try {
      const { bavail, bsize } = statfsSync(folder.path);
      return { writable: isWritable(folder.path), freeBytes: bavail * bsize };
    } catch (error) {
      throw fileError(this.#at(path), 'inspected', error);
    } finally {
      folder.close();
    }
  }

  put(path: string, content: string | Uint8Array): Promise<'written' | 'same' | 'exists'> {
    return this.#withTemporary(path, content, async (folder, temporary) => {
      const made = linkTo(temporary, join(folder.path, basename(path)));
      if (made === 'made') return 'written';
      if (made === 'unsupported') return this.#putWithoutLinks(folder, path, content);
      return compareContent(this, path, content);
    });
  }

  async replace(path: string, content: string | Uint8Array, { mode = 0o600 } = {}): Promise<void> {
    const kept = this.#use(path, 'written', (opened) => this.#permissions(opened, path));
    await this.#withTemporary(
      path,
      content,
      async (folder, temporary) => {
        if (kept !== null) setPermissions(temporary, kept);
        renameSync(temporary, join(folder.path, basename(path)));
      },
      mode,
    );
  }

  async append(path: string, content: string | Uint8Array): Promise<boolean> {
    const flags = constants.O_WRONLY | constants.O_APPEND;
    const fd = this.#use(path, 'written', (opened) => this.#reopen(opened, path, flags));
    if (fd === null) return false;
    try {
      const bytes = Buffer.from(content);
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
      return true;
    } catch (error) {
      throw fileError(this.#at(path), 'written', error);
    } finally {
      closeSync(fd);
    }
  }

  async remove(path: string): Promise<void> {
    const full = this.#at(path, 'file');
    const folder = this.#folder(dirname(full), null);
    if (folder === null) return;
    try {
      unlinkSync(join(folder.path, basename(full)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw fileError(full, 'removed', error);
    } finally {
      folder.close();
    }
  }

  async watch(path: string, changed: () => void): Promise<Watch> {
    const full = this.#at(path, 'file');
    return watching({
      version: () => this.#version(path),
      folder: () => this.#folder(dirname(full), null),
      changed,
    });
  }

  /** Changes with the file, and with the reason why it cannot be read. Never throws. */
  #version(path: string): string {
    try {
      return this.#use(path, 'inspected', (opened) => describe(opened.stat()).version) ?? '';
    } catch (error) {
      return String(error);
    }
  }

  /** Opens it, and closes it again after `use`. Null: there is nothing of that name. */
  #use<T>(path: string, what: Action, use: (opened: Opened) => T): T | null {
    const full = this.#at(path);
    let opened: Opened | null = null;
    try {
      opened = this.#opener.open(full);
      return opened === null ? null : use(opened);
    } catch (error) {
      throw fileError(full, what, error);
    } finally {
      opened?.close();
    }
  }

  #folder(full: string, mode: number | null): Opened | null {
    try {
      return openFolder(this.#opener, this.path, full, mode);
    } catch (error) {
      throw fileError(full, mode === null ? 'opened' : 'created', error);
    }
  }

  #reopen(opened: Opened, path: string, flags: number): number {
    this.#onlyFile(opened, path);
    return openSync(opened.path, flags | this.#opener.flags);
  }

  #permissions(opened: Opened, path: string): number {
    this.#onlyFile(opened, path);
    return Number(opened.stat().mode) & 0o777;
  }

  #onlyFile(opened: Opened, path: string): void {
    const stats = opened.stat();
    if (stats.isFile()) return;
    const what = { link: 'a link', folder: 'a folder', other: 'not a file', file: '' }[kindOf(stats)];
    throw new ThroughlineError('refused', `${this.#at(path)} is ${what}.`);
  }

  /**
   * Writes the content to a temporary file in the same folder, and removes that name again after `place`. A new folder may
   * be removed while it is still empty (seen once, with ten Claudes that started at the same time). Then it is created again.
   */
  async #withTemporary<T>(
    path: string,
    content: string | Uint8Array,
    place: (folder: Opened, temporary: string) => Promise<T>,
    mode = 0o600,
  ): Promise<T> {
    const full = this.#at(path, 'file');
    for (let tries = 1; ; tries += 1) {
      const folder = this.#folder(dirname(full), folderMode(mode)) as Opened;
      const temporary = join(folder.path, `.${randomUUID()}.tmp`);
      try {
        await writeFile(temporary, content, { flag: 'wx', mode });
        return await place(folder, temporary);
      } catch (error) {
        const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT';
        if (!isGone || tries === MOST_TRIES) throw fileError(full, 'written', error);
      } finally {
        removeIfThere(temporary);
        folder.close();
      }
    }
  }

  /** For file systems without hard links (FAT, some network file systems): readers may see a part of it. */
  async #putWithoutLinks(folder: Opened, path: string, content: string | Uint8Array) {
    const file = join(folder.path, basename(path));
    try {
      await writeFile(file, content, { flag: 'wx', mode: 0o600 });
      return 'written' as const;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return compareContent(this, path, content);
      removeIfThere(file);
      throw error;
    }
  }

  /** The full path of a relative one. `file`: the folder itself is refused. */
  #at(path: string, only?: 'file'): string {
    return path === '' && only === undefined ? this.path : join(this.path, checkedPath(this, path));
  }
}

/** Throws `refused` for a path that can lead out of the folder. */
export function checkedPath({ path: root }: Pick<Folder, 'path'>, path: string): string {
  const parts = path.split('/');
  if (!path.includes('\0') && parts.every((part) => part !== '' && part !== '.' && part !== '..')) return path;
  throw new ThroughlineError('refused', `${JSON.stringify(path)} is not a path inside of ${root}.`);
}

/** Whether an existing file already has the content that was to be written. */
export async function compareContent(
  folder: Pick<Folder, 'read'>,
  path: string,
  content: string | Uint8Array,
): Promise<'same' | 'exists'> {
  const bytes = Buffer.from(content);
  const there = await folder.read(path, { most: bytes.length });
  return there !== null && there.size === bytes.length && bytes.equals(there.bytes) ? 'same' : 'exists';
}

async function readPart(fd: number, from: number, length: number): Promise<Uint8Array> {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    if (done > 0) await yieldToOthers();
    const read = readSync(fd, buffer, done, Math.min(PIECE_BYTES, length - done), from + done);
    if (read === 0) break;
    done += read;
  }
  return buffer.subarray(0, done);
}

function describe(stats: BigIntStats): FileStat {
  const { size, ino, dev, mtimeNs, ctimeNs } = stats;
  return {
    kind: kindOf(stats),
    size: Number(size),
    modifiedAt: Number(mtimeNs / 1_000_000n),
    id: `${dev}:${ino}`,
    version: `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`,
  };
}

function kindOf(what: BigIntStats | Dirent): FileStat['kind'] {
  if (what.isFile()) return 'file';
  if (what.isDirectory()) return 'folder';
  return what.isSymbolicLink() ? 'link' : 'other';
}

/** Links instead of renaming: a rename would replace a file that another process has just written. */
function linkTo(temporary: string, file: string): 'made' | 'exists' | 'unsupported' {
  try {
    linkSync(temporary, file);
    return 'made';
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return 'exists';
    if (['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code)) return 'unsupported';
    throw error;
  }
}

function setPermissions(file: string, mode: number): void {
  const fd = openSync(file, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    fchmodSync(fd, mode);
  } finally {
    closeSync(fd);
  }
}

/** A user who may read the file may also enter the folder that is created for it. */
export function folderMode(mode: number): number {
  return mode | ((mode & 0o444) >> 2);
}

function removeIfThere(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // It was never created, or has another name by now.
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export type Action = 'inspected' | 'opened' | 'read' | 'listed' | 'created' | 'written' | 'removed';
export const WRITES: readonly Action[] = ['created', 'written', 'removed'];

/** An error of the file system as one of ours. `action`: what could not be done. */
function fileError(full: string, action: Action, cause: unknown): ThroughlineError {
  if (cause instanceof ThroughlineError) return cause;
  const { code = '', message } = cause as NodeJS.ErrnoException;
  const cannot = `${full} cannot be ${action}`;
  if (['ENOSPC', 'EDQUOT', 'EFBIG'].includes(code)) {
    return new ThroughlineError('storage_full', `${cannot}: the disk is full.`, { hint: 'Free some space.', cause });
  }
  if (code === 'EROFS') {
    const hint = 'Mount it writable.';
    return new ThroughlineError('storage_readonly', `${cannot}: its file system is read-only.`, { hint, cause });
  }
  if (['EACCES', 'EPERM'].includes(code)) {
    const hint = 'Check who owns it, and its permissions.';
    return new ThroughlineError(
      WRITES.includes(action) ? 'storage_readonly' : 'refused',
      `${cannot}: permission denied.`,
      { hint, cause },
    );
  }
  if (code === 'EISDIR') return new ThroughlineError('refused', `${full} is a folder.`, { cause });
  return new ThroughlineError('refused', `${cannot} (${code || message}).`, { cause });
}

interface WatchSettings {
  readonly version: () => string;
  /** The folder that the file is in; null: it is not there yet. */
  readonly folder: () => Opened | null;
  readonly changed: () => void;
}

/** Checks the file when the system reports a change in its folder, and every `LOOK_MS`. */
function watching({ version, folder: openFolderOf, changed }: WatchSettings): Watch {
  let last = version();
  let watcher: FSWatcher | null = null;
  const look = () => {
    listen();
    const now = version();
    if (now === last) return;
    last = now;
    changed();
  };
  const listen = () => {
    if (watcher !== null) return;
    let folder: Opened | null = null;
    try {
      folder = openFolderOf();
      if (folder === null) return;
      const opened = watchFolder(folder.path, { persistent: false }, look);
      // The folder is gone, or the system's limit is reached: the timer still looks.
      opened.on('error', () => opened.close());
      watcher = opened;
    } catch {
      // As above.
    } finally {
      folder?.close();
    }
  };
  listen();
  const timer = setInterval(look, LOOK_MS).unref();
  return {
    stop() {
      clearInterval(timer);
      watcher?.close();
    },
  };
}
