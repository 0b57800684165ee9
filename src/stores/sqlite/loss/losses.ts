import type { Loss, LostEvents } from '../../../core/loss.ts';
import { Database } from '../file/database.ts';
import { unlessDamaged } from '../file/faults.ts';
import { forgetHighWater, type HighWater, type Mark, type MarkedEvent } from './high-water.ts';

/*
 * Compares the database with its high-water mark when it is opened. What is missing is recorded in the database, because new events
 * take the numbers of the lost ones; it stays there until somebody acknowledges it. The log gets a new id: a number of before may now
 * mean another event. Where the database can only be read, what is missing is kept in memory, and is found again at every opening.
 */

const FACT = "SELECT value FROM facts WHERE owner = '' AND name = ?";
const SET_FACT =
  "INSERT INTO facts (owner, name, value) VALUES ('', ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value";
const REMOVE_FACT = "DELETE FROM facts WHERE owner = '' AND name = ?";
const NEXT_CHANGE = "UPDATE facts SET value = value + 1 WHERE owner = '' AND name = 'changes' RETURNING value";
const NEW_LOG = "UPDATE facts SET value = lower(hex(randomblob(16))) WHERE owner = '' AND name = 'log'";
const EVENT = `
  SELECT e.no, e.seq, c.id AS conversation, l.next_n - 1 AS turns
  FROM events e JOIN conversations c ON c.no = e.conv JOIN leases l ON l.conv = e.conv`;
const LAST_EVENT = `${EVENT} WHERE e.no = (SELECT max(no) FROM events)`;
const EVENT_AT = `${EVENT} WHERE e.no = ?`;
const EXTENT = `
  SELECT c.key, l.next_seq - 1 AS seq, l.next_n - 1 AS turns
  FROM conversations c JOIN leases l ON l.conv = c.no WHERE c.id = ?`;

/** The id of the log. A number of an event means the same event as long as it stays the same. */
export function logId(db: Database): string {
  return fact(db, 'log') ?? '';
}

/** Gives the log a new id: it is not the log any more that readers know. */
function renewLog(db: Database): void {
  db.run(NEW_LOG);
}

/**
 * For a file that was put in its place on purpose, while no process uses it: nothing is missing in it, and it is another log than the
 * one before, so that readers notice.
 */
export function asRestored(file: string): void {
  const db = new Database(file);
  try {
    renewLog(db);
    acknowledgeLosses(db);
  } finally {
    db.close();
  }
  forgetHighWater(file);
}

/** Counts a commit without an event, inside it. */
export function countChange(db: Database): number {
  return Number(db.one<{ value: string }>(NEXT_CHANGE)?.value ?? 0);
}

/** A loss, and the log that the mark belongs to. By that a loss is recorded once, whatever happens before the mark is raised. */
type RecordedLoss = Loss & { readonly log: string };

/** The losses that nobody has acknowledged yet, oldest first. */
export function losses(db: Database): Loss[] {
  const found = recorded(db).map(({ log: _, ...loss }) => loss);
  return db.noticedLoss === null ? found : [...found, db.noticedLoss];
}

export function acknowledgeLosses(db: Database): void {
  db.run(REMOVE_FACT, 'losses');
}

/** Inside a transaction: records what is missing. True: the mark then has to be raised, after the commit. */
export function recordLoss(db: Database, mark: Mark | null, now: number): boolean {
  const loss = unrecorded(db, mark, now);
  if (loss !== null) {
    db.run(SET_FACT, 'losses', JSON.stringify([...recorded(db), loss]));
    if (loss.kind === 'tail') renewLog(db);
  }
  return mark?.log !== logId(db);
}

/** Where nothing can be recorded. `mark`: as it was before the database was opened, so that it is not ahead of what is read. */
export function noticeLoss(db: Database, mark: Mark | null, now: number): void {
  const loss = unrecorded(db, mark, now);
  if (loss === null) return;
  const { log: _, ...noticed } = loss;
  db.noticedLoss = noticed;
}

/** Null: nothing is missing, or it is recorded already, and only the mark was not written again. */
function unrecorded(db: Database, mark: Mark | null, now: number): RecordedLoss | null {
  const loss = missing(db, mark, now);
  if (loss === null || mark === null || recorded(db).at(-1)?.log === mark.log) return null;
  return { ...loss, log: mark.log };
}

/** Inside a transaction, which keeps other processes from committing: makes the mark agree with the database. */
export function raiseMark(db: Database, highWater: HighWater): void {
  const log = logId(db);
  if (highWater.read()?.log === log) return; // another process was faster
  highWater.reset(log, Number(fact(db, 'changes') ?? 0), db.one<MarkedEvent>(LAST_EVENT) ?? null);
}

/** Reads only. Null: everything is there that the mark knows of. */
export function missing(db: Database, mark: Mark | null, now: number): Loss | null {
  if (mark === null) return null;
  const last = db.one<MarkedEvent>(LAST_EVENT) ?? null;
  const lastNo = last?.no ?? 0;
  const other = mark.log !== logId(db) || !agrees(db, mark, lastNo);
  const events = mark.after(other ? 0 : lastNo);
  const changes = Math.max(0, mark.changes - Number(fact(db, 'changes') ?? 0));
  if (!other && events.length === 0 && changes === 0) return null;
  if (other && events.length === 0) return null;
  return {
    noticedAt: now,
    kind: other ? 'other' : 'tail',
    events: (events.at(-1)?.no ?? 0) - (other ? 0 : lastNo),
    changes: other ? 0 : changes,
    conversations: lostIn(db, events),
  };
}

/** Whether the newest event that both have is the same one. */
function agrees(db: Database, mark: Mark, lastNo: number): boolean {
  const marked = mark.at(lastNo);
  if (marked === null) return true;
  const stored = db.one<MarkedEvent>(EVENT_AT, lastNo);
  return stored?.seq === marked.seq && stored.conversation === marked.conversation;
}

function lostIn(db: Database, events: readonly MarkedEvent[]): LostEvents[] {
  const newest = new Map(events.map((event) => [event.conversation, event]));
  return [...newest.values()].flatMap(({ conversation, seq, turns }) => {
    const found = db.one<{ key: string | null; seq: number; turns: number }>(EXTENT, conversation);
    const has = found === undefined ? null : { seq: found.seq, turns: found.turns };
    if (has !== null && has.seq >= seq) return [];
    return [{ conversationId: conversation, key: found?.key ?? null, had: { seq, turns }, has }];
  });
}

/** A damaged record counts as none, so that the rest can be used. */
function recorded(db: Database): RecordedLoss[] {
  return unlessDamaged(() => JSON.parse(fact(db, 'losses') ?? '[]'), []);
}

function fact(db: Database, name: string): string | null {
  return db.one<{ value: string }>(FACT, name)?.value ?? null;
}
