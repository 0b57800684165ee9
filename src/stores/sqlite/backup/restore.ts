import { existsSync } from 'node:fs';
import type { Restored } from '../../../ports/store/backup.ts';
import { SUCCESSOR } from '../../shared/copy/tables.ts';
import { Database } from '../file/database.ts';
import { migrate, syncToDisk } from '../file/upgrade.ts';
import { asRestored } from '../loss/losses.ts';
import { sql as LEFT_LIVING } from '../migrations/0019-left-living.ts';
import type { Replaced } from './plan.ts';

/*
 * A backup becomes the database of a data home. It is a copy of something that may still run elsewhere, so it takes nothing over from
 * there: no lease, no process, no one-time link, no other store that the data was copied to, and not the id of the log.
 */

// Its leases have expired, and their holders are not in this database.
const FORGET_PROCESSES = `
  DELETE FROM facts WHERE owner = '' AND (name GLOB 'clock:*' OR name = '${SUCCESSOR}');
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

/** Files of SQLite and of ours beside a database. They must not be found beside another one. */
const BESIDE = ['-wal', '-shm', '.highwater'];

/**
 * What changes when the draft comes to the place of the database; it is on disk then. What is there now is kept, also when it is damaged. The
 * draft is another log, in which nothing is missing.
 */
export function replacedDatabase(file: string, draft: string, kept: string): Replaced[] {
  asRestored(draft);
  syncToDisk(draft);
  const beside = BESIDE.map((end) => ({ at: `${file}${end}`, kept: `${kept}${end}`, by: null }));
  return [...beside, { at: file, kept: existsSync(file) ? kept : null, by: draft }];
}
