import { realpathSync, type Stats, statSync } from 'node:fs';
import { ThroughlineError } from '../../../core/errors.ts';

/*
 * SQLite keeps the files that it has opened. When somebody deletes or replaces one of them, it writes on into a file that nobody
 * will find again. So the files at its paths are compared, by device and inode, with those that it has opened.
 */

interface Identity {
  readonly path: string;
  readonly device: number;
  /** A large one is compared as a bigint, which takes twice as long: a number would be rounded. */
  readonly inode: number | bigint;
}

export class DataFile {
  readonly #data: Identity;
  readonly #log: Identity;

  /** Right after SQLite has opened it. */
  constructor(file: string) {
    // SQLite resolves links, and has its log beside the real file.
    const path = realpathSync(file);
    this.#data = identityOf(path);
    this.#log = identityOf(`${path}-wal`);
  }

  /** Null: they are where they were. Otherwise `storage_gone`. */
  fault(): ThroughlineError | null {
    const data = look(this.#data);
    if (data !== 'same') return data === 'gone' ? dataGone(this.#data.path) : dataReplaced(this.#data.path);
    return look(this.#log) === 'same' ? null : logGone(this.#log.path);
  }
}

function identityOf(path: string): Identity {
  const { dev: device, ino } = statSync(path);
  return { path, device, inode: Number.isSafeInteger(ino) ? ino : statSync(path, { bigint: true }).ino };
}

const ABSENT_IS_UNDEFINED = { throwIfNoEntry: false } as const;

function look({ path, device, inode }: Identity): 'same' | 'other' | 'gone' {
  let found: Stats | undefined;
  try {
    found = statSync(path, ABSENT_IS_UNDEFINED);
    if (found === undefined) return 'gone';
    const ino = typeof inode === 'number' ? found.ino : statSync(path, { bigint: true }).ino;
    return found.dev === device && ino === inode ? 'same' : 'other';
  } catch {
    // A directory on the way is no longer one, or may not be read any more.
    return 'gone';
  }
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
    hint: 'Nothing more is accepted. Restart to use the file that is there now, or put the one back that was there before.',
  });
}

function logGone(path: string): ThroughlineError {
  return new ThroughlineError('storage_gone', `The log ${path} was deleted or replaced while it was in use.`, {
    hint: 'Nothing more is accepted. Stop normally, without a kill: that writes the log into the data file. Then start again.',
  });
}
