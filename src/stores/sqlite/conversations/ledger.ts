import { conversationState, type StateFacts, type TitleSource } from '../../../core/conversation.ts';
import type { EventKind, EventPayloads } from '../../../core/event.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import type { TurnState } from '../../../core/turn/turn.ts';
import { addUsage, type Usage } from '../../../core/turn/usage.ts';
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
import { searchedTexts } from '../../shared/search.ts';
import type { StepValue, Taken } from '../../shared/verbs/steps.ts';
import { NEW_TURN, SharedLedger } from '../../shared/writing/ledger.ts';
import { unlessTaken } from '../file/faults.ts';
import type { Tx } from '../file/write-queue.ts';

const LEASE_BY_ID = `${LEASE} WHERE c.id = ?`;
export const LEASE_BY_NO = `${LEASE} WHERE l.conv = ?`;
const INSERT_EVENT = `
  INSERT INTO events (owner, conv, seq, turn, kind, at, payload, salt, chain, epoch, counter, part)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SAVE = 'UPDATE leases SET next_n = ?, next_seq = ?, chain = ?, head = ?, history = ?, epoch = ? WHERE conv = ?';
// Naming an indexed column rewrites its index, two pages more in every commit, and most writes change none.
const SAVE_INDEXED = SAVE.replace(' WHERE', ', pending = ?, ready_at = ?, worker = ? WHERE');
const LIST = 'UPDATE conversations SET state = ?, last_agent = ? WHERE no = ?';
const LIST_FIRST = 'UPDATE conversations SET state = ?, last_agent = ?, updated_at = ? WHERE no = ?';
const INSERT_TURN = `
  INSERT INTO turns (${NEW_TURN}, state, attempt, was_sent, cancel_requested)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', 0, 0, 0)`;
const ID_USED = 'SELECT 1 FROM sessions WHERE id = ? LIMIT 1';
const ID_CHOSEN = `
  SELECT 1 FROM turns INDEXED BY turns_open WHERE ended_at IS NULL AND json_extract(options, '$.newSession') = ? LIMIT 1`;
const INSERT_RECORD =
  'INSERT INTO records (turn, owner, conv, n, place, body, body_refs, unknown_before) VALUES (?, ?, ?, ?, ?, ?, ?, ?)';
const INSERT_WORDS = 'INSERT INTO words (rowid, prompt, reply) VALUES (?, ?, ?)';
const DAY = 'SELECT turns, usage FROM usage_days WHERE owner = ? AND day = ? AND agent = ?';
const SAVE_DAY = `
  INSERT INTO usage_days (owner, day, agent, turns, usage) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (owner, day, agent) DO UPDATE SET turns = excluded.turns, usage = excluded.usage`;
const KEEP = 'INSERT INTO contents (owner, hash, body) VALUES (?, ?, ?) ON CONFLICT (owner, hash) DO NOTHING';
const LINK =
  'INSERT INTO content_links (turn, content, owner) SELECT ?, no, owner FROM contents WHERE owner = ? AND hash = ? ON CONFLICT DO NOTHING';
const SET_TITLE = 'UPDATE conversations SET title = ?, title_source = ? WHERE no = ?';
const OLDEST_OPEN = 'SELECT state FROM turns WHERE conv = ? AND ended_at IS NULL ORDER BY n LIMIT 1';

/** A conversation within one transaction. Each event is stored at once. */
export class Ledger extends SharedLedger<Tx> {
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
    tx.moved(row.id, { no, seq, turns: row.next_n - 1 }, this.own);
    return seq;
  }

  restate(last: StateFacts['last'] = null, open?: TurnState): void {
    this.row.state = conversationState({ open: this.row.pending === 0 ? null : (open ?? this.#oldest()), last });
  }

  #oldest(): TurnState | null {
    return this.tx.db.one<{ state: TurnState }>(OLDEST_OPEN, this.row.conv)?.state ?? null;
  }

  /** Nothing is shared: this is the only transaction that writes, and what it has written can be read. */
  alone(): void {}

  reads(): void {}

  writes(): void {}

  insertTurn(_id: string, values: readonly StepValue[], _newSession: string | null, taken: Taken): number {
    return unlessTaken(taken, () => this.tx.db.run(INSERT_TURN, ...values).no);
  }

  sessionIdIsUsed(id: string): boolean {
    const { db } = this.tx;
    return db.one(ID_USED, id) !== undefined || db.one(ID_CHOSEN, id) !== undefined;
  }

  addRecord(turn: number, record: TurnRecord, { json, refs }: Json): void {
    const { row, tx } = this;
    row.head = record.n;
    row.history += 1;
    const unknown = record.unknownBefore ? 1 : 0;
    tx.db.run(INSERT_RECORD, turn, row.owner, row.conv, record.n, row.history, json, refs, unknown);
    tx.db.run(INSERT_WORDS, turn, ...searchedTexts(record));
  }

  addToDay(day: string, agent: string, { turns, usage }: { readonly turns: number; readonly usage: Usage }): void {
    const { row, tx } = this;
    const before = tx.db.one<{ turns: number; usage: string }>(DAY, row.owner, day, agent);
    const sum = before === undefined ? usage : addUsage(usage, JSON.parse(before.usage));
    tx.db.run(SAVE_DAY, row.owner, day, agent, (before?.turns ?? 0) + turns, JSON.stringify(sum));
  }

  linkContents(turn: number, hashes: readonly string[]): void {
    for (const name of hashes) this.tx.db.run(LINK, turn, this.row.owner, name);
  }

  protected keepContents(bodies: Separated['bodies']): void {
    for (const [name, body] of bodies) this.tx.db.run(KEEP, this.row.owner, name, body);
  }

  protected saveTitle(title: string, source: TitleSource): void {
    this.tx.db.run(SET_TITLE, title, source, this.row.conv);
  }

  save(): void {
    const { row, tx } = this;
    const values = [row.next_n, row.next_seq, row.chain, row.head, row.history, row.epoch];
    const { pending, ready_at, worker } = this.before;
    const isIndexed = row.pending !== pending || row.ready_at !== ready_at || row.worker !== worker;
    if (isIndexed) tx.db.run(SAVE_INDEXED, ...values, row.pending, row.ready_at, row.worker, row.conv);
    else tx.db.run(SAVE, ...values, row.conv);
    this.#list();
  }

  #list(): void {
    const { row, tx } = this;
    const { conv, state, last_agent } = row;
    if (this.isTouched) tx.db.run(LIST_FIRST, state, last_agent, tx.now, conv);
    else if (state !== this.before.state || last_agent !== this.before.last_agent) {
      tx.db.run(LIST, state, last_agent, conv);
    }
  }
}
