// The thread of `copy.ts`: copies a database and reads the copy back, so that neither holds the event loop of a server.
import { chmodSync, closeSync, openSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { type Failure, failureOf, ThroughlineError } from '../../../core/errors.ts';
import type { BackupContents, BackupProgress } from '../../../ports/store/backup.ts';
import { firstBroken } from '../conversations/verify.ts';
import { Database } from '../file/database.ts';
import { storageFault, whileBusy } from '../file/faults.ts';
import { checkDatabase, unwritable } from '../file/open.ts';
import { schemaVersion, syncToDisk } from '../file/upgrade.ts';

export interface CopyWork {
  /** Null: `target` is there already, and is only checked. */
  readonly source: string | null;
  readonly target: string;
  /** The name of the data in errors. */
  readonly called: string;
  readonly busyMs: number;
}

export type CopyMessage =
  | { readonly copying: number }
  | { readonly progress: BackupProgress }
  | { readonly contents: Omit<BackupContents, 'bytes'> }
  | { readonly failure: Failure };

if (parentPort !== null) void work(workerData as CopyWork, (message) => parentPort?.postMessage(message));

async function work(asked: CopyWork, say: (message: CopyMessage) => void): Promise<void> {
  const { source, target, busyMs } = asked;
  try {
    if (source !== null) await copy(source, target, busyMs, say);
    say({ contents: await readBack(asked, (progress) => say({ progress })) });
  } catch (error) {
    const fault = error instanceof ThroughlineError ? error : storageFault(error);
    if (fault === null) throw error;
    say({ failure: failureOf(fault) });
  }
}

/**
 * By `VACUUM INTO`: it reads one snapshot, whatever is written meanwhile, keeps nobody from writing, and leaves out the free pages,
 * in which erased text may still be. SQLite's page by page copy starts again at every commit of another process.
 */
async function copy(
  source: string,
  target: string,
  busyMs: number,
  say: (message: CopyMessage) => void,
): Promise<void> {
  const db = new Database(source, { unwritable: unwritable(source) !== null });
  try {
    await whileBusy(() => checkReadable(db, source), busyMs);
    say({ copying: usedBytes(db) });
    closeSync(openSync(target, 'wx', 0o600));
    await whileBusy(() => db.run('VACUUM INTO ?', target), busyMs);
  } finally {
    db.close();
  }
  chmodSync(target, 0o600);
  syncToDisk(target);
}

/** On a full disk, without the shared index of the log, for which there may be no space: nobody else has it open then. */
function checkReadable(db: Database, file: string): void {
  try {
    checkDatabase(db, file);
  } catch (error) {
    if (storageFault(error)?.code !== 'storage_full') throw error;
    db.reconnect({ alone: true });
    checkDatabase(db, file);
  }
}

const PAGES =
  'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size';

function usedBytes(db: Database): number {
  return db.one<{ bytes: number }>(PAGES)?.bytes ?? 0;
}

const CONVERSATIONS = `
  SELECT c.no, c.id, l.next_seq - 1 AS last FROM conversations c JOIN leases l ON l.conv = c.no ORDER BY c.no`;
const COUNTS = `
  SELECT (SELECT count(*) FROM conversations) AS conversations, (SELECT count(*) FROM turns) AS turns,
    (SELECT count(*) FROM events) AS events, (SELECT max(updated_at) FROM conversations) AS lastAt`;

/** Checks every page, every reference and the chain of every conversation. Throws `storage_damaged`. */
async function readBack({ target, called, busyMs }: CopyWork, say: (progress: BackupProgress) => void) {
  const db = new Database(target);
  try {
    await whileBusy(() => checkDatabase(db, called), busyMs);
    checkHasData(db, called);
    checkPages(db, called);
    const all = db.all<{ no: number; id: string; last: number }>(CONVERSATIONS);
    const broken: { conversation: string; event: number }[] = [];
    for (const [done, { no, id, last }] of all.entries()) {
      say({ step: 'checking', done, total: all.length });
      const event = await firstBroken({ read: async (look) => look(db) }, id, no, last);
      if (event !== null) broken.push({ conversation: id, event });
    }
    const counts = db.one<Pick<BackupContents, 'conversations' | 'turns' | 'events' | 'lastAt'>>(COUNTS);
    return { schema: schemaVersion(db), ...(counts as NonNullable<typeof counts>), broken };
  } finally {
    db.close();
  }
}

function checkHasData(db: Database, file: string): void {
  if (schemaVersion(db) > 0) return;
  throw new ThroughlineError('invalid', `There is no data in ${file}: it is an empty database.`);
}

function checkPages(db: Database, file: string): void {
  const found = db.one<{ integrity_check: string }>('PRAGMA integrity_check(1)')?.integrity_check;
  const reference = db.one<{ table: string }>('PRAGMA foreign_key_check')?.table;
  if (found === 'ok' && reference === undefined) return;
  throw new ThroughlineError(
    'storage_damaged',
    `${file} is damaged: ${found === 'ok' ? `a row of ${reference} refers to a row that does not exist` : found}.`,
    {
      hint: 'Use another backup. "throughline doctor" checks the data that it was made from.',
    },
  );
}
