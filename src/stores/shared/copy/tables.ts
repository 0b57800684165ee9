import { ThroughlineError } from '../../../core/errors.ts';
import { shellWord } from '../../../core/turn/quoted.ts';
import type { CopiedRow } from './side.ts';

export interface Table {
  readonly name: string;
  readonly key: readonly string[];
  /** Which rows are copied, as a condition; undefined: all. */
  readonly only?: string;
  /** How many rows are read and written at a time. */
  readonly page: number;
}

const PAGE = 200;
/** Of rows that may have megabytes. */
const FEW = 8;

const table = (name: string, key: readonly string[] = ['no'], page = PAGE): Table => ({ name, key, page });

/**
 * The tables of a copy, under names that all stores share. A table comes after those that it refers to. The hot rows (`leases`) come last: where they are the same,
 * all events of the conversation have been copied. Workers are left out: they are processes. One-time links, too: in a copy each would work a second
 * time. Of the facts, the names of places, moves, and conversations that are half erased are those of the data; the others belong to one database.
 */
export const TABLES: readonly Table[] = [
  {
    ...table('facts', ['owner', 'name']),
    only: "(name LIKE 'place:%' OR name LIKE 'moved:%' OR name LIKE 'unfinished:%')",
  },
  table('conversations'),
  table('totals', ['conv']),
  table('turns'),
  table('contents', ['no'], FEW),
  table('content_links', ['turn', 'content']),
  table('records', ['turn']),
  table('sessions'),
  table('mirrors', ['session', 'start'], FEW),
  table('receipts'),
  table('told', ['no'], FEW),
  table('permissions'),
  table('requeues'),
  table('usage_days', ['owner', 'day', 'agent']),
  table('keys'),
  table('erasures', ['owner', 'conversation']),
  table('sandboxes'),
  table('boards', ['owner']),
  table('tasks'),
  table('task_after', ['task', 'first']),
  table('task_events'),
  table('task_usage', ['owner', 'day', 'task']),
  table('events', ['conv', 'seq']),
  table('leases', ['conv']),
];

/** A row as the copy has it: nobody holds anything there. What was held can be claimed at once. */
export function asCopied({ name }: Table, row: CopiedRow): CopiedRow {
  if (name === 'leases' && row.worker !== null) return { ...row, worker: null, ready_at: row.pending === 0 ? null : 0 };
  if (name === 'tasks' && row.state === 'running') return { ...row, lease_end: 0 };
  if (name === 'sandboxes') return { ...row, holder: null, held_until: null };
  return row;
}

/**
 * Runs at the end, when nobody uses the source any more. `?` is the present time of the target store. A conversation that waits until a time
 * (`ready_at`) is ready at once, because that time is of another clock. A session that a killed process left as live becomes dormant, except
 * if its turn was sent and has not ended: the process that ends the turn then also ends the session's process.
 */
export const COMPLETE = [
  'UPDATE leases SET ready_at = ? WHERE ready_at > ?',
  `UPDATE sessions SET state = 'dormant', process = NULL WHERE state = 'live'
    AND NOT EXISTS (
      SELECT 1 FROM turns t
      WHERE t.conv = sessions.conv AND t.ended_at IS NULL AND t.sent IS NOT NULL AND t.session_id = sessions.id)`,
] as const;

/** The fact of a store that is a begun copy: the log of its source. */
export const BEGUN = 'copy';
/** The fact of a store whose data was copied to another one: the address of that one, without a password. */
export const SUCCESSOR = 'successor';
export const COPY_FACTS = `SELECT name, value FROM facts WHERE owner = '' AND name IN ('${BEGUN}', '${SUCCESSOR}')`;

export interface CopyFact {
  readonly name: string;
  readonly value: string;
}

/** Throws `refused` when a store with these facts must not be used: it is half copied, or its data is in another store now. */
export function checkUsable(facts: readonly CopyFact[]): void {
  for (const { name, value } of facts) throw name === BEGUN ? halfCopied() : hasMoved(value);
}

/** Used further, the two stores would continue separately, and each would lack what the other one has. */
export function hasMoved(successor: string): ThroughlineError {
  const store = shellWord(successor);
  return new ThroughlineError('refused', `The data of this store was copied to ${successor}, and is used there now.`, {
    hint:
      `Use that store: --store ${store}, THROUGHLINE_STORE, or "store" in the settings. If its copy was not finished, run the same ` +
      '"throughline store copy" again. To use this store again, beside the other one: "throughline store reopen STORE".',
  });
}

/** Why a copy that was begun cannot be used. */
export function halfCopied(): ThroughlineError {
  return new ThroughlineError('refused', 'The store is a copy that was not finished.', {
    hint: 'Stop what uses the store that it is copied from, and run the same "throughline store copy" again.',
  });
}
