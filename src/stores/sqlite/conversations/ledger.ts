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
import type { Tx } from '../file/write-queue.ts';

const LEASE = `
  SELECT l.*, c.id, c.state, c.last_agent, c.title, c.title_source, c.choices, c.limits, c.sandbox
  FROM leases l JOIN conversations c ON c.no = l.conv`;
export const LEASE_BY_ID = `${LEASE} WHERE c.id = ?`;
export const LEASE_BY_NO = `${LEASE} WHERE l.conv = ?`;
const INSERT_EVENT = `
  INSERT INTO events (owner, conv, seq, turn, kind, at, payload, salt, chain, epoch, counter, part)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SAVE = 'UPDATE leases SET next_n = ?, next_seq = ?, chain = ?, head = ?, history = ?, epoch = ? WHERE conv = ?';
// Naming an indexed column rewrites its index, two pages more in every commit, and most writes change none.
const SAVE_INDEXED = SAVE.replace(' WHERE', ', pending = ?, ready_at = ?, worker = ? WHERE');
const LIST = 'UPDATE conversations SET state = ?, last_agent = ? WHERE no = ?';
const LIST_FIRST = 'UPDATE conversations SET state = ?, last_agent = ?, updated_at = ? WHERE no = ?';
const OLDEST_OPEN = 'SELECT state FROM turns WHERE conv = ? AND ended_at IS NULL ORDER BY n LIMIT 1';

/** A conversation within one transaction: numbers its events, and holds its hot row until `save`. */
export class Ledger {
  readonly tx: Tx;
  readonly row: LeaseRow;
  /** The holder of the lease writes. */
  readonly #own: boolean;
  readonly #before: Pick<LeaseRow, 'pending' | 'ready_at' | 'worker' | 'state' | 'last_agent'>;
  #isTouched = false;

  constructor(tx: Tx, row: LeaseRow, own = false) {
    this.tx = tx;
    this.row = row;
    this.#own = own;
    const { pending, ready_at, worker, state, last_agent } = row;
    this.#before = { pending, ready_at, worker, state, last_agent };
  }

  /** The owner's conversation. Throws `not_found`. */
  static of(tx: Tx, owner: string, conversation: string): Ledger {
    const row = tx.db.one<LeaseRow>(LEASE_BY_ID, conversation);
    if (row === undefined || row.owner !== owner) throw noConversation();
    return new Ledger(tx, row);
  }

  static byNo(tx: Tx, conv: number): Ledger {
    return new Ledger(tx, tx.db.one<LeaseRow>(LEASE_BY_NO, conv) as LeaseRow);
  }

  /** Throws `lease_lost`. */
  static under(tx: Tx, fence: Fence): Ledger {
    return new Ledger(tx, underFence(tx.db.one<LeaseRow>(LEASE_BY_ID, fence.conversation), fence), true);
  }

  /** Gives the event the next number. `stamp`: it is written under the fence. Returns the number. */
  append<K extends EventKind>(kind: K, turn: TurnName | null, payload: EventPayloads[K], stamp?: Stamp): number {
    const { row, tx } = this;
    const { seq, json, salt } = nextEvent(row, tx.now, kind, turn, payload);
    const { no } = tx.db.run(
      INSERT_EVENT,
      row.owner,
      row.conv,
      seq,
      turn?.no ?? null,
      kind,
      tx.now,
      json,
      salt,
      row.chain,
      stamp?.epoch ?? null,
      stamp?.counter ?? null,
      stamp === undefined ? null : stamp.part++,
    );
    tx.moved(row.id, { no, seq, turns: row.next_n - 1 }, this.#own);
    return seq;
  }

  /** Moves it to the top of the list of conversations. */
  touch(): void {
    this.#isTouched = true;
  }

  /** Call it when a turn begins, waits or goes on, and with the turn that has ended (`last`). `open`: the state of the oldest open turn then. */
  restate(last: StateFacts['last'] = null, open = this.#oldest()): void {
    this.row.state = conversationState({ open, last });
  }

  #oldest(): TurnState | null {
    if (this.row.pending === 0) return null;
    return this.tx.db.one<{ state: TurnState }>(OLDEST_OPEN, this.row.conv)?.state ?? null;
  }

  save(): void {
    const { row, tx } = this;
    const values = [row.next_n, row.next_seq, row.chain, row.head, row.history, row.epoch];
    const { pending, ready_at, worker } = this.#before;
    const isIndexed = row.pending !== pending || row.ready_at !== ready_at || row.worker !== worker;
    if (isIndexed) tx.db.run(SAVE_INDEXED, ...values, row.pending, row.ready_at, row.worker, row.conv);
    else tx.db.run(SAVE, ...values, row.conv);
    this.#list();
  }

  #list(): void {
    const { row, tx } = this;
    const { conv, state, last_agent } = row;
    if (this.#isTouched) tx.db.run(LIST_FIRST, state, last_agent, tx.now, conv);
    else if (state !== this.#before.state || last_agent !== this.#before.last_agent) {
      tx.db.run(LIST, state, last_agent, conv);
    }
  }
}
