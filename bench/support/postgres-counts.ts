import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from '../../test/postgres/server.ts';

/** The settings of a real server. That of the tests would lose its data in a power failure. */
export const DURABLE = [
  ...['fsync=on', 'full_page_writes=on', 'synchronous_commit=on', 'autovacuum=on', 'max_wal_size=4GB'],
];

const SIZE = `
  SELECT sum(pg_total_relation_size(c.oid))::float8 AS bytes, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS log
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = 'r'`;
const ROWS = `SELECT sum(n_tup_ins)::float8 AS added, sum(n_tup_upd + n_tup_del)::float8 AS changed FROM pg_stat_user_tables`;
const COMMITS = 'SELECT xact_commit::float8 AS transactions FROM pg_stat_database WHERE datname = current_database()';
const REPORTED_MS = 11_000;
/** The unit in which Linux counts processor time. */
const TICK_MS = 10;

/** `transactions`: a read outside of a transaction counts as one. `cpuMs`: of the whole server. */
export type Counts = Record<'bytes' | 'log' | 'added' | 'changed' | 'transactions' | 'cpuMs', number>;

/** What the server has counted so far for a database. */
export async function countsOf(server: PostgresServer, database: string): Promise<Counts> {
  const cpuMs = cpuOf(server);
  // A connection reports its counts once a second while it is used, and the rest after it was idle for ten seconds.
  await new Promise((resolve) => setTimeout(resolve, REPORTED_MS));
  const found = await Promise.all([SIZE, ROWS, COMMITS].map((sql) => server.query(sql, [], database)));
  return Object.assign({ cpuMs }, ...found.map(([row]) => row)) as Counts;
}

/** The growth between two counts, per turn. */
export function perTurn(before: Counts, after: Counts, turns: number): Counts {
  const names = Object.keys(before) as (keyof Counts)[];
  return Object.fromEntries(names.map((name) => [name, (after[name] - before[name]) / turns])) as Counts;
}

/** The processor time of all processes of the server, including those that have ended. Linux only. */
function cpuOf({ folder }: PostgresServer): number {
  const main = readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0] ?? '';
  const children = readFileSync(`/proc/${main}/task/${main}/children`, 'utf8').trim().split(' ');
  const [own, ended] = ticks(main);
  return (children.reduce((sum, pid) => sum + ticks(pid)[0], 0) + own + ended) * TICK_MS;
}

function ticks(pid: string): [own: number, ofEndedChildren: number] {
  try {
    // The name of the program may contain spaces. Field 3 follows its closing parenthesis.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15);
    return [user + system, childUser + childSystem];
  } catch {
    return [0, 0]; // it has just ended
  }
}
