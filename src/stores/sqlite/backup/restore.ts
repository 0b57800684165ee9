import { existsSync, linkSync, mkdirSync, renameSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { ThroughlineError } from '../../../core/errors.ts';
import type { Restored } from '../../../ports/store/backup.ts';
import { Database } from '../file/database.ts';
import { storageFault, whileBusy } from '../file/faults.ts';
import { becomeAlone, migrate, syncToDisk } from '../file/upgrade.ts';
import { asRestored } from '../loss/losses.ts';
import { sql as LEFT_LIVING } from '../migrations/0019-left-living.ts';

/*
 * A backup becomes the database of a data home. It is a copy of something that may still run elsewhere, so it takes nothing over from
 * there: no lease, no process, no one-time link, and not the id of the log.
 */

// Its leases have expired, and their holders are not in this database.
const FORGET_PROCESSES = `
  DELETE FROM facts WHERE owner = '' AND name GLOB 'clock:*';
  UPDATE leases SET worker = NULL, ready_at = CASE WHEN pending > 0 THEN ready_at END WHERE worker IS NOT NULL;
  DELETE FROM workers;
  DELETE FROM sign_in_links;
  UPDATE tasks SET lease_end = 0 WHERE state = 'running';
  UPDATE sessions SET process = NULL WHERE process IS NOT NULL;
  UPDATE turns SET sent = json_set(sent, '$.process', json('null')) WHERE ended_at IS NULL AND sent ->> '$.process' IS NOT NULL;
  UPDATE tasks SET gate = NULL WHERE gate IS NOT NULL;
  ${LEFT_LIVING}`;
const ELSEWHERE = "place NOT IN (?, 'any') AND driver = 'worker'";
const HOMES_ELSEWHERE = `
  SELECT coalesce(f.value, c.place) AS home, count(*) AS conversations FROM conversations c
  LEFT JOIN facts f ON f.owner = '' AND f.name = 'place:' || c.place WHERE c.${ELSEWHERE} GROUP BY c.place ORDER BY 1`;
const MOVE = [
  ...['conversations', 'leases'].map((table) => `UPDATE ${table} SET place = ? WHERE ${ELSEWHERE}`),
  "UPDATE tasks SET place = ? WHERE place NOT IN (?, 'any')",
];

/** Makes a checked copy of a backup ready to be used in the data home with this place. */
export function makeOwn(
  draft: string,
  place: string,
  { moveHere }: { moveHere: boolean },
): Pick<Restored, 'elsewhere' | 'moved'> {
  const db = new Database(draft);
  try {
    return db.transaction(() => {
      migrate(db);
      db.script(FORGET_PROCESSES);
      const [moved = 0] = moveHere ? MOVE.map((sql) => db.run(sql, place, place).changes) : [];
      return { elsewhere: db.all<Restored['elsewhere'][number]>(HOMES_ELSEWHERE, place), moved };
    });
  } finally {
    db.close();
  }
}

const ALONE_MS = 2_000;
/** Files of SQLite and of ours beside a database. They must not be found beside another one. */
const BESIDE = ['-wal', '-shm', '.highwater'];

/**
 * Puts the draft in the place of the database. What was there is kept under another name, also when it is damaged; returns the paths. There is
 * a database at every moment, the old one or the new one. It is another log then, in which nothing is missing. Throws `conflict` while another process has it open.
 */
export async function replaceDatabase(file: string, draft: string, aside: string): Promise<string[]> {
  const old = existsSync(file) ? await heldAlone(file) : null;
  try {
    const kept: string[] = [];
    asRestored(draft);
    syncToDisk(draft);
    mkdirSync(dirname(aside), { recursive: true, mode: 0o700 });
    if (existsSync(file)) kept.push(keep(file, aside, linkOrMove));
    for (const end of BESIDE) {
      if (existsSync(`${file}${end}`)) kept.push(keep(`${file}${end}`, `${aside}${end}`, renameSync));
    }
    renameSync(draft, file);
    syncToDisk(dirname(file));
    return kept;
  } finally {
    old?.close();
  }
}

/** Some file systems have no links. There, for a moment, there is no database. */
function linkOrMove(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    renameSync(from, to);
  }
}

function keep(from: string, to: string, move: (from: string, to: string) => void): string {
  try {
    move(from, to);
  } catch (cause) {
    throw new ThroughlineError('refused', `Cannot keep ${basename(from)} as ${to}: ${(cause as Error).message}.`, {
      hint: 'Nothing was restored. Move it away by hand, and try again.',
      cause,
    });
  }
  return to;
}

/**
 * Without its log, so that nothing of it is written or deleted later, at a path that belongs to the new one then. Null: it is too
 * damaged to be opened.
 */
async function heldAlone(file: string): Promise<Database | null> {
  const db = new Database(file);
  try {
    await whileBusy(() => becomeAlone(db), ALONE_MS);
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
