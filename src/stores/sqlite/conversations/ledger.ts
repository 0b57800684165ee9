import { ThroughlineError } from '../../../core/errors.ts';
import type { EventKind, EventPayloads } from '../../../core/event.ts';
import type { Fence } from '../../../ports/store/leases.ts';
import type { Database } from '../file/database.ts';
import type { Tx } from '../file/write-queue.ts';
import { newSalt, nextChain, payloadDigest } from './chain.ts';

/** The hot row of a conversation, with the conversation's id. */
export interface LeaseRow {
  readonly conv: number;
  readonly owner: string;
  readonly id: string;
  readonly driver: string;
  readonly place: string;
  next_n: number;
  next_seq: number;
  chain: Uint8Array;
  head: number;
  history: number;
  epoch: number;
  pending: number;
  worker: number | null;
  ready_at: number | null;
}

/** The number of a write within its epoch. Its events are numbered by `part`. */
export interface Stamp {
  readonly epoch: number;
  readonly counter: number;
  part: number;
}

const LEASE = 'SELECT l.*, c.id FROM leases l JOIN conversations c ON c.no = l.conv';
const LEASE_BY_ID = `${LEASE} WHERE c.id = ?`;
export const LEASE_BY_NO = `${LEASE} WHERE l.conv = ?`;
const INSERT_EVENT = `
  INSERT INTO events (owner, conv, seq, turn, kind, at, payload, salt, chain, epoch, counter, part)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SAVE = 'UPDATE leases SET next_n = ?, next_seq = ?, chain = ?, head = ?, history = ?, epoch = ? WHERE conv = ?';
// A separate statement: naming an indexed column rewrites its index, two pages more in every commit, and most writes change none.
const SAVE_INDEXED = 'UPDATE leases SET pending = ?, ready_at = ?, worker = ? WHERE conv = ?';
const TOUCH = 'UPDATE conversations SET updated_at = ? WHERE no = ?';

/** A conversation within one transaction: numbers its events, and holds its hot row until `save`. */
export class Ledger {
  readonly tx: Tx;
  readonly row: LeaseRow;
  readonly #before: Readonly<LeaseRow>;

  constructor(tx: Tx, row: LeaseRow) {
    this.tx = tx;
    this.row = row;
    this.#before = { ...row };
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

  /** Throws as `leaseUnder` does. */
  static under(tx: Tx, fence: Fence): Ledger {
    return new Ledger(tx, leaseUnder(tx.db, fence));
  }

  /** Gives the event the next number. `stamp`: it is written under the fence. Returns the number. */
  append<K extends EventKind>(kind: K, turn: TurnName | null, payload: EventPayloads[K], stamp?: Stamp): number {
    const { row, tx } = this;
    const seq = row.next_seq;
    const json = JSON.stringify(payload);
    const salt = newSalt();
    const link = { conversation: row.id, seq, kind, turn: turn?.id ?? null, at: tx.now };
    row.chain = nextChain(row.chain, payloadDigest(salt, json), link);
    row.next_seq += 1;
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
    tx.moved(row.id, { no, seq, turns: row.next_n - 1 }, stamp !== undefined);
    return seq;
  }

  /** Moves it to the top of the list of conversations. */
  touch(): void {
    this.tx.db.run(TOUCH, this.tx.now, this.row.conv);
  }

  save(): void {
    const { row, tx } = this;
    tx.db.run(SAVE, row.next_n, row.next_seq, row.chain, row.head, row.history, row.epoch, row.conv);
    const { pending, ready_at, worker } = this.#before;
    if (row.pending === pending && row.ready_at === ready_at && row.worker === worker) return;
    tx.db.run(SAVE_INDEXED, row.pending, row.ready_at, row.worker, row.conv);
  }
}

/** The row of the conversation under the fence. Throws `lease_lost`: only the epoch decides, not the time. */
export function leaseUnder(db: Database, fence: Fence): LeaseRow {
  const row = db.one<LeaseRow>(LEASE_BY_ID, fence.conversation);
  // For its holder, an erased conversation, which has no owner, is a lost lease.
  if (row === undefined || (row.owner !== fence.owner && row.owner !== '')) throw noConversation();
  if (row.epoch === fence.epoch && row.worker !== null) return row;
  throw new ThroughlineError('lease_lost', 'Another worker owns the conversation now.');
}

export interface TurnName {
  readonly no: number;
  readonly id: string;
}

export function noConversation(): ThroughlineError {
  return new ThroughlineError('not_found', 'There is no such conversation.');
}
