import { setTimeout as sleep } from 'node:timers/promises';
import { type ErrorCode, isDamage, RESTORE_HINT, ThroughlineError } from '../../../core/errors.ts';
import type { Taken } from '../../shared/verbs/steps.ts';

// Primary result codes of SQLite.
const BUSY = 5;
const LOCKED = 6;
const IOERR = 10;
const CONSTRAINT = 19;

type StorageCode = keyof typeof WORDS;

const CODES: Readonly<Record<number, StorageCode>> = {
  3: 'storage_readonly', // PERM
  [BUSY]: 'storage_busy',
  [LOCKED]: 'storage_busy',
  8: 'storage_readonly',
  11: 'storage_damaged', // CORRUPT
  13: 'storage_full',
  14: 'storage_readonly', // CANTOPEN: the journal beside the file cannot be made
  26: 'storage_damaged', // NOTADB
};

// Extended codes of IOERR, by what a person can do about it. All others mean a disk that cannot be read.
const IO_CODES: Readonly<Record<number, StorageCode>> = {
  3: 'storage_full', // WRITE: a quota or a network disk gives this, where a local disk gives FULL
  4: 'storage_full', // FSYNC: delayed allocation found no space
  6: 'storage_full', // TRUNCATE
  9: 'storage_busy', // RDLOCK
  15: 'storage_busy', // LOCK
  18: 'storage_readonly', // SHMOPEN
  19: 'storage_full', // SHMSIZE: no space for the index of the log
  21: 'storage_full', // SHMMAP
};

const WORDS = {
  storage_full: { message: 'The disk is full.', hint: 'Nothing was stored. Free some space, and try again.' },
  storage_readonly: {
    message: 'Cannot write the database.',
    hint: 'Make the file, its directory and its file system writable for this user.',
  },
  storage_damaged: {
    message: 'A part of the database is damaged.',
    hint: `"throughline doctor" says which. ${RESTORE_HINT}`,
  },
  storage_busy: {
    message: 'Another process kept the database locked for too long.',
    hint: 'Try again. If it happens again, look for a process that hangs.',
  },
} satisfies Partial<Record<ErrorCode, { message: string; hint: string }>>;

/** The error for the caller; null: not a storage fault, usually a bug. */
export function storageFault(error: unknown): ThroughlineError | null {
  // A row that can be read, whose JSON cannot: nothing else is parsed in here. Such an error quotes what is stored, and causes are logged.
  if (error instanceof SyntaxError) return damaged();
  const number = resultCode(error);
  if (number === null) return null;
  const primary = number & 0xff;
  const code = primary === IOERR ? (IO_CODES[number >> 8] ?? 'storage_damaged') : CODES[primary];
  return code === undefined ? null : fault(code, error);
}

export function diskFull(cause?: unknown): ThroughlineError {
  return fault('storage_full', cause);
}

export function damaged(cause?: unknown): ThroughlineError {
  return fault('storage_damaged', cause);
}

export function unwritableFile(cause?: unknown): ThroughlineError {
  return fault('storage_readonly', cause);
}

function fault(code: StorageCode, cause: unknown): ThroughlineError {
  const { message, hint } = WORDS[code];
  return new ThroughlineError(code, message, { hint, cause });
}

export function isBusy(error: unknown): boolean {
  return storageFault(error)?.code === 'storage_busy';
}

/**
 * Tries again while another process holds the lock, without blocking this one. The first try is immediate and synchronous.
 * Waits are short and random, so that two processes do not collide again. Throws `storage_busy`.
 */
export async function whileBusy<T>(attempt: () => T, limitMs: number): Promise<T> {
  let start: number | undefined;
  for (let tries = 1; ; tries += 1) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      start ??= performance.now();
      if (performance.now() - start >= limitMs) throw storageFault(error);
    }
    await sleep(1 + Math.random() * Math.min(2 * tries, 20));
  }
}

/** Returns what `look` returns; `otherwise`, if it meets a damaged page. */
export function unlessDamaged<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch (error) {
    if (isDamage(storageFault(error))) return otherwise;
    throw error;
  }
}

/** A unique index or a foreign key was violated. */
export function isConstraint(error: unknown): boolean {
  return ((resultCode(error) ?? 0) & 0xff) === CONSTRAINT;
}

/** Throws the error from `taken` when a unique index refuses what is written. */
export function unlessTaken<T>(taken: Taken, write: () => T): T {
  try {
    return write();
  } catch (error) {
    throw isConstraint(error) ? taken(indexOf(error), error) : error;
  }
}

/** SQLite names only the columns of the index: "UNIQUE constraint failed: sessions.ref". */
function indexOf(error: unknown): string {
  return String((error as Error).message)
    .replace(/^.*: /, '')
    .replace('.', '_');
}

function resultCode(error: unknown): number | null {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' ? errcode : null;
}
