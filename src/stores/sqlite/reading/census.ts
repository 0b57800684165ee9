import { statSync } from 'node:fs';
import { storedProcess } from '../../../core/process.ts';
import type { Census, CensusErased, CensusSession, CensusTask, StoreMeasure } from '../../../ports/store/census.ts';
import { parsed, type Row } from '../../shared/rows.ts';
import type { Database } from '../file/database.ts';
import type { WriteQueue } from '../file/write-queue.ts';
import { allStandings } from '../turns/leases.ts';

const SESSIONS = `
  SELECT s.owner, c.id AS conversation, s.ref, s.id, s.agent, s.state, s.turns, s.process, l.worker IS NOT NULL AS held,
    l.pending AS open,
    NOT EXISTS (SELECT 1 FROM sessions n WHERE n.conv = s.conv AND n.agent = s.agent AND n.used_seq > s.used_seq) AS newest
  FROM sessions s JOIN conversations c ON c.no = s.conv JOIN leases l ON l.conv = s.conv
  WHERE (s.state = 'live' OR s.process IS NOT NULL) AND l.driver = 'worker' ORDER BY s.no`;
const SANDBOXES = 'SELECT sandbox FROM conversations UNION SELECT id FROM sandboxes';
const ERASED = `
  SELECT e.owner, e.conversation, c.sandbox, e.sandbox AS toDelete FROM erasures e JOIN conversations c ON c.id = e.conversation
  WHERE NOT EXISTS (SELECT 1 FROM conversations other WHERE other.sandbox = c.sandbox AND other.owner <> '') ORDER BY e.at`;
const TASKS = `
  SELECT t.owner, t.id, t.state, t.gate,
    (SELECT json_group_array(f.id) FROM task_after a JOIN tasks f ON f.no = a.first
     WHERE a.task = t.no AND f.state IN ('failed', 'cancelled')) AS blockedBy
  FROM tasks t WHERE t.state IN ('waiting', 'queued', 'running') OR t.gate IS NOT NULL ORDER BY t.no`;
const PLACES = `
  SELECT c.place, f.value AS name, count(*) AS conversations FROM conversations c
  LEFT JOIN facts f ON f.owner = '' AND f.name = 'place:' || c.place
  WHERE c.owner <> '' AND c.driver = 'worker' AND c.place <> 'any' GROUP BY c.place, f.value ORDER BY c.place`;

export function census(db: Database, monotonic: number): Census {
  type SessionRow = Row<Omit<CensusSession, 'held' | 'newest'>, never, 'process'> & { held: number; newest: number };
  type TaskRow = Row<CensusTask, 'blockedBy', 'gate'>;
  return {
    sessions: db.all<SessionRow>(SESSIONS).map((row) => ({
      ...row,
      process: storedProcess(parsed(row.process)),
      held: row.held === 1,
      newest: row.newest === 1,
    })),
    standings: allStandings(db, monotonic),
    sandboxes: db.all<{ sandbox: string }>(SANDBOXES).map(({ sandbox }) => sandbox),
    erased: db
      .all<Omit<CensusErased, 'toDelete'> & { toDelete: number }>(ERASED)
      .map((row) => ({ ...row, toDelete: row.toDelete === 1 })),
    places: db.all<Census['places'][number]>(PLACES),
    tasks: db
      .all<TaskRow>(TASKS)
      .map((row) => ({ ...row, gate: storedProcess(parsed(row.gate)), blockedBy: JSON.parse(row.blockedBy) })),
  };
}

const SIZE = `
  SELECT page_count * page_size AS bytes, freelist_count * page_size AS freeBytes
  FROM pragma_page_count, pragma_page_size, pragma_freelist_count`;

export function measure(db: Database, file: string, queue: Pick<WriteQueue, 'commits' | 'latency'>): StoreMeasure {
  const { bytes, freeBytes } = db.one<{ bytes: number; freeBytes: number }>(SIZE) ?? { bytes: 0, freeBytes: 0 };
  const logBytes = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return { bytes, logBytes, freeBytes, commits: queue.commits, commitMs: queue.latency() };
}
