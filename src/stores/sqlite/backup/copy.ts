import { rmSync, statSync } from 'node:fs';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { errorOf, ThroughlineError } from '../../../core/errors.ts';
import type { BackupContents, BackupOptions } from '../../../ports/store/backup.ts';
import type { CopyMessage, CopyWork } from './copy-thread.ts';

const PROGRAM = new URL(`copy-thread${extname(import.meta.url)}`, import.meta.url);
const BUSY_MS = 10_000;
/** How often the size of the copy is looked at while it grows. */
const LOOK_MS = 250;

/**
 * Copies the database to a new file while others use it, and checks the copy: complete on disk and verified when it resolves. The
 * file is readable for this user alone. Nothing is left of one that fails. Throws `storage_full`, `storage_damaged`, `storage_newer`.
 */
export async function copyDatabase(source: string, target: string, options: BackupOptions): Promise<BackupContents> {
  try {
    return await inThread({ source, target, called: source, busyMs: BUSY_MS }, options);
  } catch (error) {
    for (const end of ['', '-journal', '-wal', '-shm']) rmSync(`${target}${end}`, { force: true });
    throw error;
  }
}

/** Checks a copy of a backup, or one that is being received. `called`: its name in errors. Needs a directory in which SQLite may write. */
export function checkCopy(file: string, called: string, options: BackupOptions): Promise<BackupContents> {
  return inThread({ source: null, target: file, called, busyMs: BUSY_MS }, options);
}

/** SQLite cannot be interrupted: when the signal aborts, the thread ends with its present step. */
async function inThread(work: CopyWork, { onProgress, signal }: BackupOptions): Promise<BackupContents> {
  signal?.throwIfAborted();
  const thread = new Worker(PROGRAM, { workerData: work });
  let looking: NodeJS.Timeout | undefined;
  const stopped = Promise.withResolvers<never>();
  const stop = () => stopped.reject(new ThroughlineError('cancelled', 'The backup was cancelled.'));
  signal?.addEventListener('abort', stop);
  try {
    const contents = new Promise<Omit<BackupContents, 'bytes'>>((resolve, reject) => {
      thread.on('error', reject);
      thread.on('message', (message: CopyMessage) => {
        if ('copying' in message) {
          looking = setInterval(() => onProgress?.(copied(work.target, message.copying)), LOOK_MS);
        } else {
          clearInterval(looking);
          if ('progress' in message) onProgress?.(message.progress);
          else if ('contents' in message) resolve(message.contents);
          else reject(errorOf(message.failure));
        }
      });
    });
    const found = await Promise.race([contents, stopped.promise]);
    return { bytes: statSync(work.target).size, ...found };
  } finally {
    signal?.removeEventListener('abort', stop);
    await thread.terminate();
    // Only now: the thread's error can arrive before the message that starts the interval, which would keep the program from ending.
    clearInterval(looking);
  }
}

function copied(target: string, total: number) {
  const done = statSync(target, { throwIfNoEntry: false })?.size ?? 0;
  return { step: 'copying', done: Math.min(done, total), total } as const;
}
