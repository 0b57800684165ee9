import { conversationState, type StateFacts, type TitleSource } from '../../../core/conversation.ts';
import type { EventKind, EventPayloads } from '../../../core/event.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import type { TurnState } from '../../../core/turn/turn.ts';
import { addUsage, NO_USAGE, OPTIONAL_COUNTS, type Usage } from '../../../core/turn/usage.ts';
import type { Fence } from '../../../ports/store/leases.ts';
import type { Json, Separated } from '../../shared/content.ts';
import {
  LEASE,
  type LeaseRow,
  nextEvent,
  noConversation,
  type Stamp,
  type TurnName,
  underFence,
} from '../../shared/ledger.ts';
import { searchedTexts, wordsOf } from '../../shared/search.ts';
import type { StepValue, Taken } from '../../shared/verbs/steps.ts';
import { NEW_TURN, SharedLedger } from '../../shared/writing/ledger.ts';
import type { Tx } from '../server/access.ts';

// Locks both rows, so that they are read again after a wait. NO KEY: rows that refer to them can be added meanwhile.
const BY_ID = `${LEASE} WHERE c.id = $1 FOR NO KEY UPDATE`;
const BY_NO = `${LEASE} WHERE l.conv = $1 FOR NO KEY UPDATE`;
const UNLESS_LOCKED = `${BY_NO} SKIP LOCKED`;
const BY_ID_UNLESS_LOCKED = `${BY_ID} SKIP LOCKED`;
const SAVE = `
  UPDATE leases SET next_n = $2, next_seq = $3, chain = $4, head = $5, history = $6, epoch = $7, pending = $8, ready_at = $9, worker = $10
  WHERE conv = $1`;
const SAVE_LISTED =
  'UPDATE conversations SET state = $2, last_agent = $3, updated_at = coalesce($4, updated_at) WHERE no = $1';
const ADD_EVENT = `
  INSERT INTO events (owner, conv, seq, turn, kind, at, payload, salt, chain, epoch, counter, part)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`;
const OLDEST_OPEN = 'SELECT state FROM turns WHERE conv = $1 AND ended_at IS NULL ORDER BY n LIMIT 1';

/** A number for a new turn. Its id makes the statement one for each of many (many.ts). */
const NEXT_NO = "SELECT $1::text AS id, nextval('turns_no_seq') AS no";
const INSERT_TURN = `
  INSERT INTO turns (${NEW_TURN}, new_session, no, state, attempt, was_sent, cancel_requested)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, 'queued', 0, 0, 0)`;
/** Of two that choose the same id at the same moment, one waits for the other. */
const LOCK_ID = "SELECT pg_advisory_xact_lock(hashtextextended('session:' || $1, 0))";
const ID_USED = `
  SELECT 1 FROM sessions WHERE id = $1 UNION ALL
  SELECT 1 FROM turns WHERE ended_at IS NULL AND new_session IS NOT NULL AND new_session = $1 LIMIT 1`;
const INSERT_RECORD = `
  INSERT INTO records (turn, owner, conv, n, place, body, body_refs, unknown_before) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;
const INSERT_WORDS =
  "INSERT INTO words (turn, owner, lexemes) VALUES ($1, $2, array_to_tsvector(string_to_array($3, ' ')))";
/** Of a number that the rows may lack. */
const sumOf = (name: string) =>
  `coalesce((d.usage::json->>'${name}')::numeric, 0) + coalesce((excluded.usage::json->>'${name}')::numeric, 0)`;
/** The sum as `addUsage` and `JSON.stringify` would write it, so that the row need not be read first. */
const SUM = `format('{${Object.keys(NO_USAGE)
  .map((name) => `"${name}":%s`)
  .join(',')}%s}', ${Object.keys(NO_USAGE).map(sumOf).join(', ')}, ${OPTIONAL_COUNTS.map(
  (name) => `coalesce(',"${name}":' || nullif(${sumOf(name)}, 0), '')`,
).join(' || ')})`;
const ADD_DAY = `
  INSERT INTO usage_days AS d (owner, day, agent, turns, usage) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (owner, day, agent) DO UPDATE SET turns = d.turns + excluded.turns, usage = ${SUM}`;
// DO UPDATE also locks contents that are known: nobody deletes them as unused before they are linked.
const KEEP = `
  INSERT INTO contents (owner, hash, body)
  SELECT DISTINCT ON (c.owner, c.hash) c.owner, c.hash, c.body FROM unnest($1::text[], $2::text[], $3::text[]) AS c (owner, hash, body)
  ORDER BY c.owner, c.hash ON CONFLICT (owner, hash) DO UPDATE SET hash = excluded.hash`;
const LINK = `
  INSERT INTO content_links (turn, content, owner) SELECT $1, no, owner FROM contents WHERE owner = $2 AND hash = ANY($3::text[])
  ON CONFLICT DO NOTHING`;
const SET_TITLE =
  "UPDATE conversations SET title = $1, title_source = $2, title_words = array_to_tsvector(string_to_array($4, ' ')) WHERE no = $3";

interface Spent {
  readonly turns: number;
  readonly usage: Usage;
}

interface NewEvent extends ReturnType<typeof nextEvent> {
  readonly turn: number | null;
  readonly kind: string;
  readonly chain: Uint8Array;
  readonly stamp: Stamp | null;
}

/** A conversation within one transaction. Holds its new events until `save`. */
export class Ledger extends SharedLedger<Tx> {
  /** What was written here. In a shared transaction it cannot be read again. */
  readonly #written = new Set<string>();
  readonly #events: NewEvent[] = [];
  /** Undefined: the state of the conversation stays. */
  #last: StateFacts['last'] | undefined;
  /** Of the oldest open turn, after what was written here; undefined: it has to be read. */
  #open: TurnState | undefined;

  /** The owner's conversation. Throws `not_found`. */
  static async of(tx: Tx, owner: string, conversation: string): Promise<Ledger> {
    const row = await Ledger.#lock(tx, conversation);
    if (row === undefined || row.owner !== owner) throw noConversation();
    return new Ledger(tx, row);
  }

  /** In a transaction that it shares, a verb does not wait for the lock of another one. */
  static async #lock(tx: Tx, conversation: string): Promise<LeaseRow | undefined> {
    const row = await tx.sql.one<LeaseRow>(tx.isShared ? BY_ID_UNLESS_LOCKED : BY_ID, conversation);
    if (row === undefined) tx.alone();
    return row;
  }

  /** One that may be missing. */
  static async find(tx: Tx, conversation: string): Promise<Ledger | null> {
    const row = await Ledger.#lock(tx, conversation);
    return row === undefined ? null : new Ledger(tx, row);
  }

  static async byNo(tx: Tx, conv: number): Promise<Ledger> {
    return new Ledger(tx, (await tx.sql.one<LeaseRow>(BY_NO, conv)) as LeaseRow);
  }

  /** Null: another transaction has it. */
  static async unlessLocked(tx: Tx, conv: number): Promise<Ledger | null> {
    const row = await tx.sql.one<LeaseRow>(UNLESS_LOCKED, conv);
    return row === undefined ? null : new Ledger(tx, row);
  }

  /** Throws `lease_lost`. */
  static async under(tx: Tx, fence: Fence): Promise<Ledger> {
    return new Ledger(tx, underFence(await Ledger.#lock(tx, fence.conversation), fence), true);
  }

  append<K extends EventKind>(kind: K, turn: TurnName | null, payload: EventPayloads[K], stamp?: Stamp): number {
    const { row, tx } = this;
    const event = nextEvent(row, tx.now, kind, turn, payload);
    const numbered = stamp === undefined ? null : { ...stamp, part: stamp.part++ };
    this.#events.push({ ...event, turn: turn?.no ?? null, kind, chain: row.chain, stamp: numbered });
    tx.moved(row.id, this.own);
    return event.seq;
  }

  alone(): void {
    this.tx.alone();
  }

  reads(what: string): void {
    if (this.#written.has(what)) this.tx.alone();
  }

  writes(what: string): void {
    this.#written.add(what);
  }

  restate(last: StateFacts['last'] = null, open?: TurnState): void {
    this.#open = open;
    this.#last = last;
  }

  async save(): Promise<void> {
    const { row, tx } = this;
    if (this.#last !== undefined) row.state = conversationState({ open: await this.#oldest(), last: this.#last });
    const { conv, owner, next_n, next_seq, chain, head, history, epoch, pending, ready_at, worker, state, last_agent } =
      row;
    const isListed = this.isTouched || state !== this.before.state || last_agent !== this.before.last_agent;
    for (const { seq, turn, kind, json, salt, chain: upTo, stamp } of this.#events.splice(0)) {
      const written = [stamp?.epoch ?? null, stamp?.counter ?? null, stamp?.part ?? null];
      tx.sql.run(ADD_EVENT, owner, conv, seq, turn, kind, tx.now, json, salt, upTo, ...written);
    }
    tx.sql.run(SAVE, conv, next_n, next_seq, chain, head, history, epoch, pending, ready_at, worker);
    if (isListed) tx.sql.run(SAVE_LISTED, conv, state, last_agent, this.isTouched ? tx.now : null);
  }

  /** The state of the oldest open turn; null: none is open. */
  async #oldest(): Promise<TurnState | null> {
    if (this.row.pending === 0) return null;
    if (this.#open !== undefined) return this.#open;
    this.tx.alone();
    return (await this.tx.sql.one<{ state: TurnState }>(OLDEST_OPEN, this.row.conv))?.state ?? null;
  }

  async insertTurn(id: string, values: readonly StepValue[], newSession: string | null, taken: Taken): Promise<number> {
    const { sql } = this.tx;
    const { no } = (await sql.one<{ no: number }>(NEXT_NO, id)) as { no: number };
    sql.runUnlessTaken(taken, INSERT_TURN, ...values, newSession, no);
    return no;
  }

  async sessionIdIsUsed(id: string): Promise<boolean> {
    const { tx } = this;
    tx.alone();
    tx.sql.run(LOCK_ID, id);
    return (await tx.sql.one(ID_USED, id)) !== undefined;
  }

  addRecord(turn: number, record: TurnRecord, { json, refs }: Json): void {
    const { row, tx } = this;
    row.head = record.n;
    row.history += 1;
    const unknown = record.unknownBefore ? 1 : 0;
    tx.sql.run(INSERT_RECORD, turn, row.owner, row.conv, record.n, row.history, json, refs, unknown);
    tx.sql.run(INSERT_WORDS, turn, row.owner, wordsOf(searchedTexts(record).join('\n')).join(' '));
  }

  /** All conversations of an owner count in this row. */
  addToDay(day: string, agent: string, { turns, usage }: Spent): void {
    this.tx.last<Spent>({
      ...{ text: ADD_DAY, key: [this.row.owner, day, agent], amount: { turns, usage: addUsage(NO_USAGE, usage) } },
      add: (a, b) => ({ turns: a.turns + b.turns, usage: addUsage(a.usage, b.usage) }),
      values: (all) => [all.turns, JSON.stringify(all.usage)],
    });
  }

  linkContents(turn: number, hashes: readonly string[]): void {
    if (hashes.length > 0) this.tx.sql.run(LINK, turn, this.row.owner, hashes);
  }

  protected keepContents(bodies: Separated['bodies']): void {
    const hashes = [...bodies.keys()];
    const owners = hashes.map(() => this.row.owner);
    if (hashes.length > 0) this.tx.sql.runFirst(KEEP, owners, hashes, [...bodies.values()]);
  }

  protected saveTitle(title: string, source: TitleSource): void {
    this.tx.sql.run(SET_TITLE, title, source, this.row.conv, wordsOf(title).join(' '));
  }
}
