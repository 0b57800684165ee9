import { conversationState, type StateFacts } from '../../../core/conversation.ts';
import type { EventKind, EventPayloads } from '../../../core/event.ts';
import type { TurnState } from '../../../core/turn/turn.ts';
import type { Fence } from '../../../ports/store/leases.ts';
import {
  type LeaseRow,
  nextEvent,
  noConversation,
  type Stamp,
  type TurnName,
  underFence,
} from '../../shared/ledger.ts';
import type { TurnRow } from '../../shared/rows.ts';
import type { SessionName } from '../../shared/sessions.ts';
import type { Tx } from '../server/access.ts';
import type { Sql } from '../server/connect.ts';

// Locks both rows, so that they are read again after a wait. NO KEY: rows that refer to them can be added meanwhile.
const LEASE = `
  SELECT l.conv, l.owner, l.driver, l.place, l.next_n, l.next_seq, l.chain, l.head, l.history, l.epoch, l.pending, l.worker, l.ready_at,
    c.id, c.state, c.last_agent, c.title, c.title_source, c.choices, c.limits, c.sandbox
  FROM leases l JOIN conversations c ON c.no = l.conv`;
const READ_BY_ID = `${LEASE} WHERE c.id = $1`;
const BY_ID = `${READ_BY_ID} FOR NO KEY UPDATE`;
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

export type NumberedTurn = TurnName & { readonly n: number };

/** What a write needs to know of its turn. */
export type BegunTurn = Pick<TurnRow, 'no' | 'id' | 'n' | 'state' | 'agent' | 'attempt' | 'sent'>;

/** What a turn needs to know of its session. */
export interface UsedSession extends Omit<SessionName, 'no'> {
  readonly ref: string;
  readonly unread: number;
  readonly turns: number;
}

interface NewEvent extends ReturnType<typeof nextEvent> {
  readonly turn: number | null;
  readonly kind: string;
  readonly chain: Uint8Array;
  readonly stamp: Stamp | null;
}

/**
 * A conversation within one transaction, which has it alone: numbers its events, and holds its hot row and the new events until
 * `save`.
 */
export class Ledger {
  readonly tx: Tx;
  readonly row: LeaseRow;
  /** The holder of the lease writes. */
  readonly #own: boolean;
  /** Turns by their ids: a commit mostly names the same one again and again. */
  readonly names = new Map<string, NumberedTurn>();
  /** What was written here, by id: turns, sessions, receipts. In a shared transaction it cannot be read again. */
  readonly #written = new Set<string>();
  /** The turn that began here, as it is then. */
  begun: BegunTurn | null = null;
  /** Sessions that were opened or used here, by our reference, as they are then. */
  readonly sessions = new Map<string, UsedSession>();
  readonly #before: Pick<LeaseRow, 'state' | 'last_agent'>;
  readonly #events: NewEvent[] = [];
  /** Undefined: the state of the conversation stays. */
  #last: StateFacts['last'] | undefined;
  #isTouched = false;
  /** Of the oldest open turn, after what was written here; undefined: it has to be read. */
  #open: TurnState | undefined;

  constructor(tx: Tx, row: LeaseRow, own = false) {
    this.tx = tx;
    this.row = row;
    this.#own = own;
    const { state, last_agent } = row;
    this.#before = { state, last_agent };
  }

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

  /** Its row, read only. Throws `lease_lost`. */
  static async read(sql: Sql, fence: Fence): Promise<LeaseRow> {
    return underFence(await sql.one<LeaseRow>(READ_BY_ID, fence.conversation), fence);
  }

  /** Gives the event the next number. `stamp`: it is written under the fence. Returns the number. */
  append<K extends EventKind>(kind: K, turn: TurnName | null, payload: EventPayloads[K], stamp?: Stamp): number {
    const { row, tx } = this;
    const event = nextEvent(row, tx.now, kind, turn, payload);
    const numbered = stamp === undefined ? null : { ...stamp, part: stamp.part++ };
    this.#events.push({ ...event, turn: turn?.no ?? null, kind, chain: row.chain, stamp: numbered });
    tx.moved(row.id, this.#own);
    return event.seq;
  }

  /** Call it before something is read that may have been written here. Throws when it was, and cannot be read yet. */
  reads(what: string): void {
    if (this.#written.has(what)) this.tx.alone();
  }

  writes(what: string): void {
    this.#written.add(what);
  }

  /** Moves it to the top of the list of conversations. */
  touch(): void {
    this.#isTouched = true;
  }

  /** A turn was accepted. Behind others it does not change the state of the conversation. */
  accepted(): void {
    this.row.pending += 1;
    if (this.row.pending === 1) this.#open = 'queued';
    if (this.row.pending === 1 || this.#last !== undefined) this.#last = null;
  }

  /** Call it when a turn begins, waits or goes on, and with the turn that has ended (`last`). `open`: the state of the oldest open turn then. */
  restate(last: StateFacts['last'] = null, open?: TurnState): void {
    this.#open = open;
    this.#last = last;
  }

  async save(): Promise<void> {
    const { row, tx } = this;
    if (this.#last !== undefined) row.state = conversationState({ open: await this.#oldest(), last: this.#last });
    const { conv, owner, next_n, next_seq, chain, head, history, epoch, pending, ready_at, worker, state, last_agent } =
      row;
    const isListed = this.#isTouched || state !== this.#before.state || last_agent !== this.#before.last_agent;
    for (const { seq, turn, kind, json, salt, chain: upTo, stamp } of this.#events.splice(0)) {
      const written = [stamp?.epoch ?? null, stamp?.counter ?? null, stamp?.part ?? null];
      tx.sql.run(ADD_EVENT, owner, conv, seq, turn, kind, tx.now, json, salt, upTo, ...written);
    }
    tx.sql.run(SAVE, conv, next_n, next_seq, chain, head, history, epoch, pending, ready_at, worker);
    if (isListed) tx.sql.run(SAVE_LISTED, conv, state, last_agent, this.#isTouched ? tx.now : null);
  }

  /** The state of the oldest open turn; null: none is open. */
  async #oldest(): Promise<TurnState | null> {
    if (this.row.pending === 0) return null;
    if (this.#open !== undefined) return this.#open;
    this.tx.alone();
    return (await this.tx.sql.one<{ state: TurnState }>(OLDEST_OPEN, this.row.conv))?.state ?? null;
  }
}
