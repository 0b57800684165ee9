import { ThroughlineError } from '../../../core/errors.ts';
import { sql as schema } from '../migrations/0001-schema.ts';
import { sql as signInLinks } from '../migrations/0002-sign-in-links.ts';
import { sql as cheaperTurns } from '../migrations/0003-cheaper-turns.ts';
import { sql as arranged } from '../migrations/0004-arranged.ts';
import type { Server } from './connect.ts';
import { openFault } from './faults.ts';

/** By number, from 1. One that was published never changes. */
const MIGRATIONS: readonly string[] = [schema, signInLinks, cheaperTurns, arranged];
/** How many steps newer a schema may be than the program. A new schema keeps what the version before it needs, so that both run side by side. */
const BESIDE = 1;
/** All processes that open a database upgrade it one after the other. The number is ours alone. */
export const LOCK = 7_448_330_121;

const FACTS = "SELECT current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS replica";
const HAS_VERSION = "SELECT to_regclass('schema_version') IS NOT NULL AS known";
const MAKE_VERSION = 'CREATE TABLE schema_version (version int NOT NULL); INSERT INTO schema_version VALUES (0)';

/**
 * Brings the schema up to date, in one transaction. Throws when the database cannot be used. `looks`: the caller only reads, and must not upgrade
 * what others use: an older schema is `refused`. An empty database gets its tables all the same. `exact`: the caller has to know all tables: also a
 * schema that is one step newer is refused.
 */
export async function upgrade(server: Server, { looks = false, exact = false } = {}): Promise<void> {
  const client = await server.pool.connect().catch((error: unknown) => {
    throw openFault(error);
  });
  let broken = false;
  try {
    const { rows } = await client.query<{ encoding: string; replica: boolean }>(FACTS);
    check(rows[0]);
    await client.query('BEGIN');
    await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
    const { rows: known } = await client.query<{ known: boolean }>(HAS_VERSION);
    if (known[0]?.known !== true) await client.query(MAKE_VERSION);
    const { rows: found } = await client.query<{ version: number }>('SELECT version FROM schema_version');
    const version = found[0]?.version ?? 0;
    if (version > MIGRATIONS.length + (exact ? 0 : BESIDE)) throw newer(version);
    if (looks && version > 0 && version < MIGRATIONS.length) throw older(version);
    for (const sql of MIGRATIONS.slice(version)) await client.query(sql);
    if (version < MIGRATIONS.length) await client.query(`UPDATE schema_version SET version = ${MIGRATIONS.length}`);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {
      broken = true;
    });
    throw openFault(error);
  } finally {
    client.release(broken);
  }
}

function check(facts: { encoding: string; replica: boolean } | undefined): void {
  if (facts?.encoding !== 'UTF8') {
    throw new ThroughlineError('refused', `The database has the encoding ${facts?.encoding}, and needs UTF8.`, {
      hint: 'Create another one: CREATE DATABASE throughline ENCODING UTF8 TEMPLATE template0.',
    });
  }
  if (facts.replica) {
    throw new ThroughlineError('storage_readonly', 'The database server is a replica, which only allows reading.', {
      hint: 'Give the address of the primary server.',
    });
  }
}

function newer(version: number): ThroughlineError {
  return new ThroughlineError('storage_newer', `The database has the schema ${version} of a newer Throughline.`, {
    hint: `This version supports schemas up to ${MIGRATIONS.length}. Start the newer version.`,
  });
}

function older(version: number): ThroughlineError {
  return new ThroughlineError(
    'refused',
    `The database has the schema ${version} of an older Throughline, this one needs ${MIGRATIONS.length}. A command that only reads does not upgrade it.`,
    {
      hint: 'Look with the older version; or upgrade it: make a backup, then start "throughline serve" of this version (docs/deploy.md).',
    },
  );
}
