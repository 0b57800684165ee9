import { storedProcess } from '../../../core/process.ts';
import type { Census, CensusErased, CensusSession, CensusTask, StoreMeasure } from '../../../ports/store/census.ts';
import { parsed, type Row } from '../../shared/rows.ts';
import type { Access } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';
import { allStandings } from '../turns/leases.ts';

const SESSIONS = `
  SELECT s.owner, c.id AS conversation, s.ref, s.id, s.agent, s.state, s.turns, s.process, l.worker IS NOT NULL AS held,
    l.pending AS open,
    NOT EXISTS (SELECT 1 FROM sessions n WHERE n.conv = s.conv AND n.agent = s.agent AND n.used_seq > s.used_seq) AS newest
  FROM sessions s JOIN conversations c ON c.no = s.conv JOIN leases l ON l.conv = s.conv
  WHERE (s.state = 'live' OR s.process IS NOT NULL) AND l.driver = 'worker' ORDER BY s.no`;
const SANDBOXES = 'SELECT sandbox FROM conversations UNION SELECT id FROM sandboxes';
const ERASED = `
  SELECT e.owner, e.conversation, c.sandbox, e.sandbox = 1 AS "toDelete" FROM erasures e JOIN conversations c ON c.id = e.conversation
  WHERE NOT EXISTS (SELECT 1 FROM conversations other WHERE other.sandbox = c.sandbox AND other.owner <> '') ORDER BY e.at`;
const TASKS = `
  SELECT t.owner, t.id, t.state, t.gate,
    ARRAY(SELECT f.id FROM task_after a JOIN tasks f ON f.no = a.first
     WHERE a.task = t.no AND f.state IN ('failed', 'cancelled') ORDER BY f.no) AS "blockedBy"
  FROM tasks t WHERE t.state IN ('waiting', 'queued', 'running') OR t.gate IS NOT NULL ORDER BY t.no`;
const PLACES = `
  SELECT c.place, f.value AS name, count(*) AS conversations FROM conversations c
  LEFT JOIN facts f ON f.owner = '' AND f.name = 'place:' || c.place
  WHERE c.owner <> '' AND c.driver = 'worker' AND c.place <> 'any' GROUP BY c.place, f.value ORDER BY c.place`;
const SIZE = 'SELECT pg_database_size(current_database()) AS bytes';

export async function census(sql: Sql, monotonic: number): Promise<Census> {
  const sessions = await sql.all<Row<CensusSession, never, 'process'>>(SESSIONS);
  const tasks = await sql.all<Row<CensusTask, never, 'gate'>>(TASKS);
  return {
    sessions: sessions.map((row) => ({ ...row, process: storedProcess(parsed(row.process)) })),
    standings: await allStandings(sql, monotonic),
    sandboxes: (await sql.all<{ sandbox: string }>(SANDBOXES)).map(({ sandbox }) => sandbox),
    erased: await sql.all<CensusErased>(ERASED),
    places: await sql.all<Census['places'][number]>(PLACES),
    tasks: tasks.map((row) => ({ ...row, gate: storedProcess(parsed(row.gate)) })),
  };
}

/** What the server needs beside the data, its log, is not seen from here. */
export async function measure(
  sql: Sql,
  access: Pick<Access, 'commits' | 'latency' | 'connections'>,
): Promise<StoreMeasure> {
  const { bytes = 0 } = (await sql.one<{ bytes: number }>(SIZE)) ?? {};
  const { commits, connections } = access;
  return { bytes, logBytes: 0, freeBytes: 0, commits, commitMs: access.latency(), connections };
}
