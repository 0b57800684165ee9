import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect } from 'vitest';
import type { ProcessIdentity } from '../../../src/core/process.ts';
import { identityOf } from '../../contracts/liveness.ts';

/* Reads values of turns and sessions that are stored but not public from the database file. */

interface DataHome {
  readonly path: string;
}

/** The process that was given the prompt of a turn. */
export function sentTo(home: DataHome, turnId: string): ProcessIdentity {
  const [row] = rows<{ sent: string | null }>(home, 'SELECT sent FROM turns WHERE id = ?', turnId);
  return identityOf(JSON.parse(row?.sent ?? 'null')?.process);
}

interface StoredSession {
  readonly position: string | null;
  readonly mirrored: number;
  /** Null: no process holds it. */
  readonly process: ProcessIdentity | null;
}

/** Every session of a home, most recently used first. */
export function storedSessions(home: DataHome): StoredSession[] {
  const sql = 'SELECT position, mirrored, process FROM sessions ORDER BY used_at DESC, used_seq DESC';
  return rows<{ position: string | null; mirrored: number; process: string | null }>(home, sql).map((row) => ({
    ...row,
    process: row.process === null ? null : identityOf(JSON.parse(row.process)),
  }));
}

/** Kills the agent process that holds the session used last. */
export function killAgent(home: DataHome): void {
  process.kill(storedSessions(home)[0]?.process?.pid ?? expect.unreachable('no process holds the session'), 'SIGKILL');
}

function rows<T>({ path }: DataHome, sql: string, ...values: string[]): T[] {
  using db = new DatabaseSync(join(path, 'throughline.db'), { readOnly: true, timeout: 60_000 });
  return db.prepare(sql).all(...values) as T[];
}
