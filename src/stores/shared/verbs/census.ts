import { storedProcess } from '../../../core/process.ts';
import type { Census, CensusErased, CensusSession, CensusTask } from '../../../ports/store/census.ts';
import { parsed, type Row } from '../rows.ts';
import { type StandingRow, standingOf } from '../totals.ts';
import { PLACE, STANDING } from './places.ts';
import { all, type Steps } from './steps.ts';

const STANDINGS = `${STANDING} WHERE l.pending > 0 AND l.driver = 'worker' ORDER BY l.conv`;
const SESSIONS = `
  SELECT s.owner, c.id AS conversation, s.ref, s.id, s.agent, s.state, s.turns, s.process, l.worker IS NOT NULL AS held,
    l.pending AS open,
    NOT EXISTS (SELECT 1 FROM sessions n WHERE n.conv = s.conv AND n.agent = s.agent AND n.used_seq > s.used_seq) AS newest
  FROM sessions s JOIN conversations c ON c.no = s.conv JOIN leases l ON l.conv = s.conv
  WHERE (s.state = 'live' OR s.process IS NOT NULL) AND l.driver = 'worker' ORDER BY s.no`;
const SANDBOXES = 'SELECT sandbox FROM conversations UNION SELECT id FROM sandboxes';
const ERASED = `
  SELECT e.owner, e.conversation, c.sandbox, e.sandbox = 1 AS "toDelete"
  FROM erasures e JOIN conversations c ON c.id = e.conversation
  WHERE NOT EXISTS (SELECT 1 FROM conversations other WHERE other.sandbox = c.sandbox AND other.owner <> '') ORDER BY e.at`;
const TASKS = `
  SELECT no, owner, id, state, gate FROM tasks
  WHERE state IN ('waiting', 'queued', 'running') OR gate IS NOT NULL ORDER BY no`;
/** Tasks that have failed or were cancelled, and that unfinished tasks wait for. */
const BLOCKING = `
  SELECT a.task, f.id FROM tasks f JOIN task_after a ON a.first = f.no JOIN tasks t ON t.no = a.task
  WHERE f.state IN ('failed', 'cancelled') AND t.state IN ('waiting', 'queued', 'running') ORDER BY f.no`;
/** The places of conversations, with how many there are. */
const PLACES = `
  SELECT c.place, f.value AS name, count(*) AS conversations FROM conversations c
  LEFT JOIN facts f ON f.owner = '' AND f.name = '${PLACE}' || c.place
  WHERE c.owner <> '' AND c.driver = 'worker' AND c.place <> 'any' GROUP BY c.place, f.value ORDER BY c.place`;

/** SQLite has numbers where PostgreSQL has true and false. */
export function* census(monotonic: number): Steps<Census> {
  const sessions = yield* all<Row<CensusSession, never, 'process'>>(SESSIONS);
  const tasks = yield* all<Omit<Row<CensusTask, never, 'gate'>, 'blockedBy'> & { no: number }>(TASKS);
  const blocking = Map.groupBy(yield* all<{ task: number; id: string }>(BLOCKING), ({ task }) => task);
  return {
    sessions: sessions.map((row) => ({
      ...row,
      process: storedProcess(parsed(row.process)),
      held: Boolean(row.held),
      newest: Boolean(row.newest),
    })),
    standings: (yield* all<StandingRow>(STANDINGS)).map((row) => standingOf(row, monotonic)),
    sandboxes: (yield* all<{ sandbox: string }>(SANDBOXES)).map(({ sandbox }) => sandbox),
    erased: (yield* all<CensusErased>(ERASED)).map((row) => ({ ...row, toDelete: Boolean(row.toDelete) })),
    places: yield* all<Census['places'][number]>(PLACES),
    tasks: tasks.map(({ no, ...row }) => ({
      ...row,
      gate: storedProcess(parsed(row.gate)),
      blockedBy: (blocking.get(no) ?? []).map(({ id }) => id),
    })),
  };
}
