import type { BigIntStats } from 'node:fs';
import { closeSync, constants, existsSync, fstatSync, lstatSync, mkdirSync, openSync, readlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ThroughlineError } from '../../core/errors.ts';

/*
 * Opens files in a folder where an agent may create links at any moment.
 *
 * Linux: the path is opened as a mere reference (O_PATH), which does not touch the file itself: it waits for no pipe and starts no
 * device. The link /proc/self/fd/N then shows the real path of that reference. If this is not the path that was asked for, a link was on
 * the way. Everything else uses the reference, which nobody can redirect.
 *
 * Other systems have no such reference, so every part of the path is checked first. A part that is replaced between the check and the use
 * is not noticed.
 */

const O_PATH = 0o10000000;
const REFERENCE = O_PATH | constants.O_NOFOLLOW;

/** Something that was opened. `path` leads to it and to nothing else, as long as it is not closed. */
export interface Opened {
  readonly path: string;
  stat(): BigIntStats;
  close(): void;
}

export interface Opener {
  /** `full`: the real path. A link as its last part is opened itself. Null: there is nothing. Throws `refused` for a path through a link. */
  open(full: string): Opened | null;
  /** Flags for opening `Opened.path` to read or write. */
  readonly flags: number;
}

/** Enough for a file that is replaced, or a folder that is removed, all the time. */
const MOST_TRIES = 100;
const DELETED = ' (deleted)';

const byReference: Opener = {
  flags: constants.O_NONBLOCK | constants.O_NOCTTY,
  open(full) {
    for (let tries = 0; tries < MOST_TRIES; tries += 1) {
      const fd = openIfThere(full);
      if (fd === null) return null;
      const path = `/proc/self/fd/${fd}`;
      const real = readlinkSync(path);
      if (real === full) return { path, stat: () => fstatSync(fd, { bigint: true }), close: () => closeSync(fd) };
      closeSync(fd);
      // It was removed or replaced after it was opened: open it again.
      if (real !== full + DELETED) throw throughLink(full);
    }
    return null;
  },
};

function openIfThere(full: string): number | null {
  try {
    return openSync(full, REFERENCE);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    if (code === 'ELOOP') throw throughLink(full);
    throw error;
  }
}

/** For systems without /proc. `root`: the part of the path that is trusted. */
const byParts = (root: string): Opener => ({
  flags: constants.O_NONBLOCK | constants.O_NOCTTY | constants.O_NOFOLLOW,
  open(full) {
    for (let above = dirname(full); above.length > root.length; above = dirname(above)) {
      if (lstatSync(above, { throwIfNoEntry: false })?.isSymbolicLink()) throw throughLink(full);
    }
    const stats = lookAt(full);
    return stats && { path: full, stat: () => stats, close() {} };
  },
});

function lookAt(full: string): BigIntStats | null {
  try {
    return lstatSync(full, { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return null;
    throw error;
  }
}

/** `procfs`: whether to use /proc; only tests choose. */
export function openerIn(root: string, procfs = existsSync('/proc/self/fd')): Opener {
  return procfs ? byReference : byParts(root);
}

/**
 * Opens a folder, and creates it and the folders above it when they are missing. `root` itself is trusted.
 * `mode`: the permissions of created folders; null: none is created.
 */
export function openFolder(
  opener: Opener,
  root: string,
  full: string,
  mode: number | null,
  tries = MOST_TRIES,
): Opened | null {
  const there = opener.open(full);
  if (there !== null) {
    const stats = there.stat();
    if (stats.isDirectory()) return there;
    there.close();
    throw stats.isSymbolicLink() ? throughLink(full) : new ThroughlineError('refused', `${full} is not a folder.`);
  }
  if (mode === null) return null;
  if (full === root) {
    mkdirSync(root, { recursive: true, mode });
  } else {
    const above = openFolder(opener, root, dirname(full), mode) as Opened;
    try {
      makeFolder(join(above.path, basename(full)), mode);
    } finally {
      above.close();
    }
  }
  const made = openFolder(opener, root, full, null);
  if (made !== null) return made;
  if (tries > 1) return openFolder(opener, root, full, mode, tries - 1);
  throw new ThroughlineError('refused', `${full} was removed while it was created.`);
}

function makeFolder(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

export function throughLink(full: string): ThroughlineError {
  return new ThroughlineError('refused', `The path ${full} contains a symbolic link.`, {
    hint: 'Links in the folders of agents are not followed. Put the file itself there.',
  });
}
