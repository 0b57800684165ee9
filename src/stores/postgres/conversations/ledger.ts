import { conversationState, type StateFacts, type TitleSource } from '../../../core/conversation.ts';
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
import type { Tx } from '../server/access.ts';

// Both rows are locked, and so read anew after a wait. Not their keys: what refers to them does not wait.
const LEASE = `
  SELECT l.conv, l.owner, l.driver, l.place, l.next_n, l.next_seq, l.chain, l.head, l.history, l.epoch, l.pending, l.worker, l.ready_at,
    c.id, c.state, c.last_agent, c.title, c.title_source, c.choices
  FROM leases l JOIN conversations c ON c.no = l.conv`;
const BY_ID = `${LEASE} WHERE c.id = $1 FOR NO KEY UPDATE`;
const BY_NO = `${LEASE} WHERE l.conv = $1 FOR NO KEY UPDATE`;
const UNLESS_LOCKED = `${BY_NO} SKIP LOCKED`;
/** All of it in one statement: each would be a message to the server and back. */
const SAVE = `
  WITH saved AS (
    UPDATE leases SET next_n = $4, next_seq = $5, chain = $6, head = $7, history = $8, epoch = $9, pending = $10, ready_at = $11,
      worker = $12
    WHERE conv = $2
  ), listed AS (
    UPDATE conversations SET state = $13, last_agent = $14, updated_at = coalesce($15, updated_at) WHERE no = $2 AND $16
  )
  INSERT INTO events (owner, conv, seq, turn, kind, at, payload, salt, chain, epoch, counter, part)
  SELECT $1, $2, e.seq, e.turn, e.kind, $3, e.payload, e.salt, e.chain, e.epoch, e.counter, e.part
  FROM unnest($17::bigint[], $18::bigint[], $19::text[], $20::text[], $21::bytea[], $22::bytea[], $23::bigint[], $24::bigint[], $25::int[])
    AS e (seq, turn, kind, payload, salt, chain, epoch, counter, part)`;
const OLDEST_OPEN = 'SELECT state FROM turns WHERE conv = $1 AND ended_at IS NULL ORDER BY n LIMIT 1';

/** The hot row, with what accepting a turn needs of the conversation. */
interface LedgerRow extends LeaseRow {
  title: string;
  title_source: TitleSource;
  readonly choices: string;
}

export type NumberedTurn = TurnName & { readonly n: number };

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
  readonly row: LedgerRow;
  /** Turns by their ids: a commit mostly names the same one again and again. */
  readonly names = new Map<string, NumberedTurn>();
  readonly #before: Pick<LeaseRow, 'state' | 'last_agent'>;
  readonly #events: NewEvent[] = [];
  /** Undefined: the state of the conversation stays. */
  #last: StateFacts['last'] | undefined;
  #isTouched = false;
  /** The oldest open turn is one that was accepted just now. */
  #isFirst = false;

  constructor(tx: Tx, row: LedgerRow) {
    this.tx = tx;
    this.row = row;
    const { state, last_agent } = row;
    this.#before = { state, last_agent };
  }

  /** The owner's conversation. Throws `not_found`. */
  static async of(tx: Tx, owner: string, conversation: string): Promise<Ledger> {
    const row = await tx.sql.one<LedgerRow>(BY_ID, conversation);
    if (row === undefined || row.owner !== owner) throw noConversation();
    return new Ledger(tx, row);
  }

  static async byNo(tx: Tx, conv: number): Promise<Ledger> {
    return new Ledger(tx, (await tx.sql.one<LedgerRow>(BY_NO, conv)) as LedgerRow);
  }

  /** Null: another transaction has it. */
  static async unlessLocked(tx: Tx, conv: number): Promise<Ledger | null> {
    const row = await tx.sql.one<LedgerRow>(UNLESS_LOCKED, conv);
    return row === undefined ? null : new Ledger(tx, row);
  }

  /** Throws `lease_lost`. */
  static async under(tx: Tx, fence: Fence): Promise<Ledger> {
    return new Ledger(tx, underFence(await tx.sql.one<LedgerRow>(BY_ID, fence.conversation), fence));
  }

  /** Gives the event the next number. `stamp`: it is written under the fence. Returns the number. */
  append<K extends EventKind>(kind: K, turn: TurnName | null, payload: EventPayloads[K], stamp?: Stamp): number {
    const { row, tx } = this;
    const event = nextEvent(row, tx.now, kind, turn, payload);
    const numbered = stamp === undefined ? null : { ...stamp, part: stamp.part++ };
    this.#events.push({ ...event, turn: turn?.no ?? null, kind, chain: row.chain, stamp: numbered });
    tx.moved(row.id, stamp !== undefined);
    return event.seq;
  }

  /** Moves it to the top of the list of conversations. */
  touch(): void {
    this.#isTouched = true;
  }

  /** A turn was accepted. Behind others it changes nothing of what the conversation is. */
  accepted(): void {
    this.row.pending += 1;
    if (this.row.pending === 1) this.#isFirst = true;
    if (this.row.pending === 1 || this.#last !== undefined) this.#last = null;
  }

  /** To be called when a turn begins, waits or goes on, and with the turn that has ended (`last`). */
  restate(last: StateFacts['last'] = null): void {
    this.#isFirst = false;
    this.#last = last;
  }

  async save(): Promise<void> {
    const { row, tx } = this;
    if (this.#last !== undefined) row.state = conversationState({ open: await this.#oldest(), last: this.#last });
    const { conv, owner, next_n, next_seq, chain, head, history, epoch, pending, ready_at, worker, state, last_agent } =
      row;
    const isListed = this.#isTouched || state !== this.#before.state || last_agent !== this.#before.last_agent;
    const events = this.#events.splice(0);
    tx.sql.run(
      SAVE,
      ...[owner, conv, tx.now, next_n, next_seq, chain, head, history, epoch, pending, ready_at, worker],
      ...[state, last_agent, this.#isTouched ? tx.now : null, isListed],
      events.map(({ seq }) => seq),
      events.map(({ turn }) => turn),
      events.map(({ kind }) => kind),
      events.map(({ json }) => json),
      events.map(({ salt }) => salt),
      events.map((event) => event.chain),
      events.map(({ stamp }) => stamp?.epoch ?? null),
      events.map(({ stamp }) => stamp?.counter ?? null),
      events.map(({ stamp }) => stamp?.part ?? null),
    );
  }

  /** The state of the oldest open turn; null: none is open. */
  async #oldest(): Promise<TurnState | null> {
    if (this.row.pending === 0) return null;
    return this.#isFirst
      ? 'queued'
      : ((await this.tx.sql.one<{ state: TurnState }>(OLDEST_OPEN, this.row.conv))?.state ?? null);
  }
}
