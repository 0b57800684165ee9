import { realpathSync, type Stats, statSync } from 'node:fs';
import { ThroughlineError } from '../../../core/errors.ts';

/*
 * SQLite keeps the files that it has opened. When one of them is deleted or replaced, it continues to write into a file that nobody
 * will find again. When one is cut, it continues to write behind the gap, and nothing behind a gap in the log is read again. So the files
 * at its paths are compared, by device, inode and size, with those that it has opened.
 */

/** Above this size the log is made shorter again, after a burst; below it, and the data file at any size, they only grow. */
export const LOG_BYTES = 64 * 1024 * 1024;

interface Seen {
  readonly path: string;
  readonly device: number;
  /** A large one is compared as a bigint, which takes twice as long: a number would be rounded. */
  readonly inode: number | bigint;
  /** The least size that it can have from now on. */
  bytes: number;
}

export class DataFile {
  readonly #data: Seen;
  /** Null: there was none when it was opened, because it is only read. */
  readonly #log: Seen | null;

  /** Right after SQLite has opened it. */
  constructor(file: string) {
    // SQLite resolves links, and has its log beside the real file.
    const path = realpathSync(file);
    this.#data = see(path, statSync(path));
    const log = statSync(`${path}-wal`, ABSENT_IS_UNDEFINED);
    this.#log = log === undefined ? null : see(`${path}-wal`, log);
  }

  /** Null: they are where they were. Otherwise `storage_gone`. */
  fault(): ThroughlineError | null {
    const { path } = this.#data;
    const data = look(this.#data, Number.POSITIVE_INFINITY);
    if (data === 'cut') return wasCut(path);
    if (data !== 'same') return data === 'gone' ? dataGone(path) : dataReplaced(path);
    if (this.#log === null) return null;
    const log = look(this.#log, LOG_BYTES);
    if (log === 'cut') return wasCut(this.#log.path);
    return log === 'same' ? null : logGone(this.#log.path);
  }
}

function see(path: string, { dev: device, ino, size: bytes }: Stats): Seen {
  return { path, device, bytes, inode: Number.isSafeInteger(ino) ? ino : statSync(path, { bigint: true }).ino };
}

const ABSENT_IS_UNDEFINED = { throwIfNoEntry: false } as const;

/** `most`: no size above this one is expected to stay. */
function look(seen: Seen, most: number): 'same' | 'other' | 'gone' | 'cut' {
  const { path, device, inode } = seen;
  let found: Stats | undefined;
  try {
    found = statSync(path, ABSENT_IS_UNDEFINED);
    if (found === undefined) return 'gone';
    const ino = typeof inode === 'number' ? found.ino : statSync(path, { bigint: true }).ino;
    if (found.dev !== device || ino !== inode) return 'other';
  } catch {
    // A directory on the way is no longer one, or may not be read any more.
    return 'gone';
  }
  if (found.size < Math.min(seen.bytes, most)) return 'cut';
  seen.bytes = found.size;
  return 'same';
}

function wasCut(path: string): ThroughlineError {
  return new ThroughlineError('storage_gone', `${path} was cut or overwritten while it was in use.`, {
    hint:
      'Nothing more is accepted. Restart, and "throughline doctor" says what is missing or damaged; "throughline restore FILE" restores a ' +
      'backup. If it was made smaller on purpose (VACUUM), a restart is enough.',
  });
}

function dataGone(path: string): ThroughlineError {
  return new ThroughlineError('storage_gone', `The data file ${path} was deleted or moved while it was in use.`, {
    hint:
      'Nothing more is accepted. Put the same file back, and work continues by itself; another file needs a restart. Until then ' +
      'everything can still be read and exported.',
  });
}

function dataReplaced(path: string): ThroughlineError {
  return new ThroughlineError('storage_gone', `Another file was put in the place of ${path} while it was in use.`, {
    hint: 'Nothing more is accepted. Restart to use the file that is there now, or put the earlier file back.',
  });
}

function logGone(path: string): ThroughlineError {
  return new ThroughlineError('storage_gone', `The log ${path} was deleted or replaced while it was in use.`, {
    hint: 'Nothing more is accepted. Stop normally, without a kill: that writes the log into the data file. Then start again.',
  });
}
