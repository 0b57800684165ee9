import { ThroughlineError } from '../../core/errors.ts';
import type { Database } from './database.ts';
import { MIGRATIONS } from './migrations/list.ts';

/** Marks a file as ours ("thrl"), so that another program's database is never taken for one. */
const APPLICATION = 0x7468_726c;

/** Looks at the file without changing it. Throws `storage_newer`, or `storage_damaged` for another program's database. */
export function checkSchema(db: Database, file: string): void {
  const version = schemaVersion(db);
  if (version > MIGRATIONS.length) {
    throw new ThroughlineError('storage_newer', `${file} was written by a newer version of this program.`, {
      hint: `It has schema ${version}; this program knows ${MIGRATIONS.length}. Update Throughline.`,
    });
  }
  const application = db.one<{ application_id: number }>('PRAGMA application_id')?.application_id;
  const empty = db.one('SELECT 1 FROM sqlite_schema LIMIT 1') === undefined;
  if (application !== APPLICATION && !(empty && version === 0)) {
    throw new ThroughlineError('storage_damaged', `${file} is a database of another program.`, {
      hint: 'Name another file; this one was not touched.',
    });
  }
}

/** Brings the schema up to date. Inside a write transaction, so that of several processes one does it. */
export function migrate(db: Database): void {
  const version = schemaVersion(db);
  for (const sql of MIGRATIONS.slice(version)) db.script(sql);
  if (version === MIGRATIONS.length) return;
  db.script(`PRAGMA application_id = ${APPLICATION}`);
  db.script(`PRAGMA user_version = ${MIGRATIONS.length}`);
}

function schemaVersion(db: Database): number {
  return db.one<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0;
}
