import { isDamage, ThroughlineError } from '../../../core/errors.ts';
import { payloadDigest } from '../../shared/chain.ts';
import { rowsOfStep } from '../../shared/page.ts';
import type { Access } from '../file/access.ts';
import type { Database } from '../file/database.ts';
import { isConstraint, storageFault } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';

/*
 * A long conversation is copied and erased in steps, each in a transaction of its own, so that others write in between and the event
 * loop is not held. Meanwhile the row of the conversation names no owner. So nobody sees it: what is found in another way (a turn by its
 * id, a word) counts only if the row of its conversation has the same owner.
 *
 *   copy:   hidden ──pages──▶ the last page: revealed        erase:   hidden ──steps──▶ done
 *              └─ crash: given up later                                   └─ crash: continued later
 *
 * A fact in the database names what is unfinished. The next process that opens the database finishes it. Every step checks that the fact is still
 * there: another process may have finished first, and a new conversation gets the number of one that was removed.
 */
type Kind = 'copy' | 'give-up' | 'erase';

interface Mark {
  readonly kind: Kind;
  readonly conv: number;
  readonly at: number;
}

/** A copy that has not grown for so long is given up: its process is gone. */
const ABANDONED_MS = 600_000;

const MARK = `
  INSERT INTO facts (owner, name, value) VALUES ('', 'unfinished:' || ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`;
const MARKED = "SELECT value FROM facts WHERE owner = '' AND name = 'unfinished:' || ?";
const UNMARK = "DELETE FROM facts WHERE owner = '' AND name = 'unfinished:' || ?";
const ALL_MARKED = `
  SELECT substr(name, 12) AS id FROM facts WHERE owner = '' AND name >= 'unfinished:' AND name < 'unfinished;'`;

export function markUnfinished({ db, now }: Tx, id: string, kind: Kind, conv: number): void {
  db.run(MARK, id, JSON.stringify({ kind, conv, at: now } satisfies Mark));
}

export function markFinished({ db }: Tx, id: string): void {
  db.run(UNMARK, id);
}

function markOf(db: Database, id: string): Mark | null {
  const row = db.one<{ value: string }>(MARKED, id);
  return row === undefined ? null : JSON.parse(row.value);
}

/** Null also where it is damaged. That is reported, and the others are still finished. */
function readableMarkOf(db: Database, id: string): Mark | null {
  try {
    return markOf(db, id);
  } catch (error) {
    if (!isDamage(storageFault(error))) throw error;
    db.onDamage(error);
    return null;
  }
}

/**
 * Records that the copy still grows. Throws when another process gives it up or has given it up, because this process was suspended for
 * long.
 */
export function markGrowing(tx: Tx, id: string): number {
  const mark = markOf(tx.db, id);
  if (mark?.kind !== 'copy') {
    throw new ThroughlineError('interrupted', 'The copy took too long and was given up.', { hint: 'Try again.' });
  }
  markUnfinished(tx, id, 'copy', mark.conv);
  return mark.conv;
}

/** Finishes what a crash left unfinished. Another process may do the same at the same time. */
export async function endUnfinished(access: Access): Promise<void> {
  for (const { id } of await access.read((db) => db.all<{ id: string }>(ALL_MARKED))) {
    const mark = await access.read((db) => readableMarkOf(db, id));
    // When damage keeps a part of one, the others are still finished.
    if (mark?.kind === 'erase') await forget(access, id).catch(isLeft);
    else if (mark?.kind === 'give-up') await remove(access, id);
    else if (mark !== null && access.clock.now() - mark.at > ABANDONED_MS) await giveUp(access, id);
  }
}

/** Erases a copy that was not finished, with all its rows. From here on it cannot be continued. */
export async function giveUp(access: Access, id: string): Promise<void> {
  await access.write((tx) => {
    const mark = markOf(tx.db, id);
    if (mark?.kind === 'copy') markUnfinished(tx, id, 'give-up', mark.conv);
  });
  await remove(access, id);
}

function remove(access: Access, id: string): Promise<void> {
  return inSteps(access, id, 'give-up', [...STEPS, REMOVE_TURNS, REMOVE]);
}

/**
 * Deletes what was said in a conversation that is hidden already. Numbers, kinds, times and digests stay. Throws `storage_damaged` when a
 * part could not be deleted; the rest is.
 */
export function forget(access: Access, id: string): Promise<void> {
  return inSteps(access, id, 'erase', STEPS);
}

interface Step {
  /** Does a part of the work after a place, and returns the place that it came to; null: there is nothing more. May be repeated. */
  run(db: Database, conv: number, after: number): number | null;
  /** The same for single rows. A damaged page ends the step that meets it; rows on other pages can still be deleted one by one. */
  readonly rows?: { readonly numbers: string; forget(db: Database, no: number): void };
}

/** Does nothing when it is finished already. Rows on a damaged page are left, the rest is done, and it stays unfinished. */
async function inSteps(access: Access, id: string, kind: Kind, steps: readonly Step[]): Promise<void> {
  const marked = <T>(work: (tx: Tx, conv: number) => T) =>
    access.write((tx) => {
      const mark = markOf(tx.db, id);
      return mark?.kind === kind ? work(tx, mark.conv) : null;
    });
  let damage: unknown = null;
  for (const { run, rows } of steps) {
    try {
      for (let at: number | null = 0; at !== null; ) {
        const after: number = at;
        at = await marked(({ db }, conv) => run(db, conv, after));
      }
    } catch (error) {
      if (!isDamage(error)) throw error;
      damage = error;
      if (rows === undefined) continue;
      const { numbers, forget } = rows;
      for (const { no } of (await marked(({ db }, conv) => db.all<{ no: number }>(numbers, conv)).catch(isLeft)) ?? [])
        await marked(({ db }) => forget(db, no)).catch(isLeft);
    }
  }
  if (damage !== null) throw leftByDamage(damage);
  await marked((tx) => markFinished(tx, id));
}

/** Ignores that a row is on a damaged page, or refers to one. */
function isLeft(error: unknown): null {
  if (isDamage(error) || isConstraint(error)) return null;
  throw error;
}

/** The only way to get rid of a damaged page. */
const RID_OF_DAMAGE =
  'Restore a backup with "throughline restore FILE" and erase it there. Without one: export the other conversations, import them into ' +
  'another data home, and delete this data file.';

function leftByDamage(cause: unknown): ThroughlineError {
  return new ThroughlineError(
    'storage_damaged',
    'The conversation is no longer shown, but a damaged part of the database still holds some of what was said in it.',
    { hint: RID_OF_DAMAGE, cause },
  );
}

/** The error when it cannot be hidden. */
export function keptByDamage(cause: unknown): ThroughlineError {
  return new ThroughlineError(
    'storage_damaged',
    'The conversation cannot be erased: the part of the database that names it is damaged. Nothing was changed.',
    { hint: RID_OF_DAMAGE, cause },
  );
}

/** Whether its erasure was begun and not finished. */
export function isErasedInPart(db: Database, id: string): boolean {
  return markOf(db, id)?.kind === 'erase';
}

/** How many rows a step takes. */
const ROWS = 100;

function rowsOf(table: string): Step {
  const some = `DELETE FROM ${table} WHERE no IN (SELECT no FROM ${table} WHERE conv = ? ORDER BY no DESC LIMIT ${ROWS})`;
  const one = `DELETE FROM ${table} WHERE no = ?`;
  return {
    run: (db, conv) => (db.run(some, conv).changes < ROWS ? null : 0),
    rows: { numbers: numbersIn(table), forget: (db, no) => void db.run(one, no) },
  };
}

/** From an index. */
function numbersIn(table: string): string {
  return `SELECT no FROM ${table} WHERE conv = ? ORDER BY no DESC`;
}

const MIRRORS = `
  SELECT m.session, m.start FROM sessions s JOIN mirrors m ON m.session = s.no WHERE s.conv = ? LIMIT ${ROWS}`;
const FORGET_MIRROR = 'DELETE FROM mirrors WHERE session = ? AND start = ?';

function mirrors(db: Database, conv: number): number | null {
  const rows = db.all<{ session: number; start: number }>(MIRRORS, conv);
  for (const { session, start } of rows) db.run(FORGET_MIRROR, session, start);
  return rows.length < ROWS ? null : 0;
}

const TURNS = `SELECT no, n FROM turns WHERE conv = ? AND n > ? ORDER BY n LIMIT ${ROWS}`;
const CONTENTS = 'SELECT content FROM content_links WHERE turn = ?';
const IF_UNUSED = 'DELETE FROM contents WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM content_links WHERE content = ?1)';
/** Each takes the number of the turn. */
const FORGET_TURN = [
  'DELETE FROM content_links WHERE turn = ?',
  'DELETE FROM words WHERE rowid = ?',
  'DELETE FROM records WHERE turn = ?',
  `UPDATE turns SET owner = '', request_id = NULL, request_hash = NULL, prompt = '[]', prompt_refs = 0, options = '{}',
     session_id = NULL, retry_of = NULL, sent = NULL, failure = NULL, delivered = NULL, replaces = NULL,
     replaced_by = NULL WHERE no = ?`,
];

const turns: Step = {
  run(db, conv, after) {
    const rows = db.all<{ no: number; n: number }>(TURNS, conv, after);
    for (const { no } of rows) forgetTurn(db, no);
    return rows.length < ROWS ? null : (rows.at(-1)?.n ?? null);
  },
  rows: { numbers: numbersIn('turns'), forget: forgetTurn },
};

function forgetTurn(db: Database, no: number): void {
  const contents = db.all<{ content: number }>(CONTENTS, no);
  for (const statement of FORGET_TURN) db.run(statement, no);
  for (const { content } of contents) db.run(IF_UNUSED, content);
}

const SAID = `SELECT no, seq, payload, salt FROM events WHERE conv = ? AND seq > ? ORDER BY seq LIMIT ${ROWS}`;
const FORGET_EVENT = "UPDATE events SET payload = NULL, salt = NULL, digest = ?, owner = '' WHERE no = ?";

interface SaidRow {
  readonly no: number;
  readonly seq: number;
  readonly payload: string | null;
  readonly salt: Uint8Array | null;
}

const SAID_IN = 'SELECT no, seq, payload, salt FROM events WHERE no = ?';

/** The digest of every event stays, and with it the chain. */
const events: Step = {
  run(db, conv, after) {
    const rows = rowsOfStep(db.each<SaidRow>(SAID, conv, after), (row) => row.payload);
    for (const row of rows) forgetEvent(db, row);
    return rows.at(-1)?.seq ?? null;
  },
  rows: {
    numbers: numbersIn('events'),
    forget(db, no) {
      const row = db.one<SaidRow>(SAID_IN, no);
      if (row !== undefined) forgetEvent(db, row);
    },
  },
};

function forgetEvent(db: Database, { no, payload, salt }: SaidRow): void {
  if (payload !== null && salt !== null) db.run(FORGET_EVENT, Buffer.from(payloadDigest(salt, payload), 'hex'), no);
}

/** The row of no turn. */
const NO_TURN = -1;
const ADD_WORD = `INSERT INTO words (rowid, prompt, reply) VALUES (${NO_TURN}, 'erased', '')`;
const DELETE_WORD = `DELETE FROM words WHERE rowid = ${NO_TURN}`;
const MERGE = "INSERT INTO words (words, rank) VALUES ('merge', ?)";
/** About how many pages of the index one step rewrites. */
const MERGED = 40;
const CHANGES = 'SELECT total_changes() AS changes';

/** Otherwise the index rewrites itself while turns are deleted, in one step for seconds. */
const NO_MERGE = "INSERT INTO words (words, rank) VALUES ('deletemerge', 0)";

function keepWords(db: Database): null {
  db.run(NO_MERGE);
  return null;
}

/**
 * Removes the words of deleted turns from the index, by rewriting all of it. (Without their texts, which the index does not keep, it
 * cannot find the words of one turn.) SQLite begins a rewrite when the number of pages is negative, and continues it when it is positive;
 * less than two changes mean that it is complete. SQLite does not rewrite an index that has only one part, so the first step adds a
 * second part.
 */
function words(db: Database, _: number, after: number): number | null {
  if (after === 0) {
    db.run(DELETE_WORD);
    db.run(ADD_WORD);
    return 1;
  }
  const changes = () => db.one<{ changes: number }>(CHANGES)?.changes ?? 0;
  const before = changes();
  db.run(MERGE, after === 1 ? -MERGED : MERGED);
  return changes() - before < 2 ? null : 2;
}

/** Children before parents. */
const STEPS: readonly Step[] = [
  rowsOf('permissions'),
  rowsOf('receipts'),
  rowsOf('told'),
  rowsOf('requeues'),
  { run: mirrors },
  rowsOf('sessions'),
  { run: keepWords },
  turns,
  events,
  { run: words },
];

const REMOVE_TURNS: Step = rowsOf('turns');
const OF_CONVERSATION = [
  'DELETE FROM totals WHERE conv = ?',
  'DELETE FROM leases WHERE conv = ?',
  'DELETE FROM conversations WHERE no = ?',
];
const REMOVE: Step = {
  run(db, conv) {
    for (const statement of OF_CONVERSATION) db.run(statement, conv);
    return null;
  },
};
