import type { StoreMeasure } from '../../../ports/store/census.ts';
import type { Access } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';

const SIZE = 'SELECT pg_database_size(current_database()) AS bytes';

/** The server's own log, which it has beside the data, is not visible from here. */
export async function measure(sql: Sql, access: Pick<Access, 'commitTimes' | 'connections'>): Promise<StoreMeasure> {
  const { bytes = 0 } = (await sql.one<{ bytes: number }>(SIZE)) ?? {};
  // Read after the query: otherwise the query itself counts as waiting for a connection.
  const { commitTimes, connections } = access;
  return { bytes, logBytes: 0, freeBytes: 0, commits: commitTimes.count, commitMs: commitTimes.latency(), connections };
}
