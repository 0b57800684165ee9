import type { Conversation, StateFacts, TitleSource } from '../../../core/conversation.ts';
import type { EventKind, EventPayloads } from '../../../core/event.ts';
import type { TurnRecord } from '../../../core/turn/record.ts';
import type { TurnState } from '../../../core/turn/turn.ts';
import type { Usage } from '../../../core/turn/usage.ts';
import type { NewConversation } from '../../../ports/store/conversations.ts';
import type { Fence, WorkerInfo } from '../../../ports/store/leases.ts';
import { type Json, pack, type Separated, separate } from '../content.ts';
import { type LeaseRow, type Stamp, type TurnName, takesTitle } from '../ledger.ts';
import type { TurnRow } from '../rows.ts';
import type { StepAccess, Steps, StepTx, StepValue, Taken } from '../verbs/steps.ts';

export type NumberedTurn = TurnName & { readonly n: number };

/** What a write needs to know of its turn. */
export type BegunTurn = Pick<TurnRow, 'no' | 'id' | 'n' | 'state' | 'agent' | 'attempt' | 'sent'>;

/** What a turn needs to know of its session. */
export interface UsedSession {
  readonly ref: string;
  readonly id: string;
  readonly agent: string;
  readonly usage: string;
  readonly unread: number;
  readonly turns: number;
}

/** The columns of a new turn, in the order of the values for `insertTurn`. */
export const NEW_TURN =
  'owner, conv, n, id, request_id, request_hash, queued_seq, agent, prompt, prompt_refs, options, retry_of, usage, created_at, delivered, replaces';

interface Times {
  readonly now: number;
  readonly monotonic: number;
}

/** A conversation within one transaction, which has it alone: numbers its events, and holds its hot row until `save`. */
export abstract class SharedLedger<Tx extends Times = Times> {
  readonly tx: Tx;
  readonly row: LeaseRow;
  /** The holder of the lease writes. */
  protected readonly own: boolean;
  protected readonly before: Readonly<LeaseRow>;
  protected isTouched = false;
  /** Turns by their ids: a commit mostly names the same one again and again. */
  readonly names = new Map<string, NumberedTurn>();
  /** The turn that began here and was neither sent nor ended here, as it was then. */
  begun: BegunTurn | null = null;
  /** Sessions that were opened or used here, by our reference, as they are then. */
  readonly sessions = new Map<string, UsedSession>();

  constructor(tx: Tx, row: LeaseRow, own = false) {
    this.tx = tx;
    this.row = row;
    this.own = own;
    this.before = { ...row };
  }

  /** Gives the event the next number. `stamp`: it is written under the fence. Returns the number. */
  abstract append<K extends EventKind>(
    kind: K,
    turn: TurnName | null,
    payload: EventPayloads[K],
    stamp?: Stamp,
  ): number;

  /** Call it when a turn begins, waits or continues, and with the turn that has ended (`last`). `open`: the state of the oldest open turn then, if any. */
  abstract restate(last?: StateFacts['last'], open?: TurnState): void;

  abstract save(): void | Promise<void>;

  /**
   * To be called before a verb reads what it has written, and before it waits for a lock. On PostgreSQL it then begins again, if it shares its
   * transaction with verbs of other conversations: what these write is sent after all of them have read.
   */
  abstract alone(): void;

  /** Calls `alone` if this was written here, by id: turns, sessions, receipts. Call it before that is read. */
  abstract reads(what: string): void;

  abstract writes(what: string): void;

  /** Adds a queued turn with these values of `NEW_TURN`. `newSession`: the id that its session shall have. Returns its number (`no`). */
  abstract insertTurn(
    id: string,
    values: readonly StepValue[],
    newSession: string | null,
    taken: Taken,
  ): number | Promise<number>;

  /** Whether there is a session with this id, or an open turn that has chosen it. */
  abstract sessionIdIsUsed(id: string): boolean | Promise<boolean>;

  /** Puts the record at the end of the history and makes it the head. `body`: the record without its prompt. */
  abstract addRecord(turn: number, record: TurnRecord, body: Json): void;

  /** Adds to what the owner has spent on this day. */
  abstract addToDay(day: string, agent: string, spent: { readonly turns: number; readonly usage: Usage }): void;

  /** Records which contents a turn uses, so that unused ones can be found. */
  abstract linkContents(turn: number, hashes: readonly string[]): void;

  protected abstract keepContents(bodies: Separated['bodies']): void;

  protected abstract saveTitle(title: string, source: TitleSource): void;

  /** Moves it to the top of the list of conversations. */
  touch(): void {
    this.isTouched = true;
  }

  /** False: the conversation keeps the title that it has. */
  giveTitle(title: string, source: TitleSource): boolean {
    if (!takesTitle(this.row, title, source)) return false;
    this.saveTitle(title, source);
    this.append('conversation.titled', null, { title, source });
    return true;
  }

  /** Stores the long strings of a value, under these hashes. */
  storeValue(value: unknown): Json & { readonly hashes: readonly string[] } {
    const { json, refs, bodies } = separate(value);
    this.keepContents(bodies);
    return { json, refs, hashes: [...bodies.keys()] };
  }

  /** The same for what is long and seldom read. */
  packValue(value: unknown) {
    const { bytes, refs, bodies } = pack(value);
    this.keepContents(bodies);
    return { bytes, refs, hashes: [...bodies.keys()] };
  }
}

type Opened = SharedLedger | Promise<SharedLedger>;

/** What a verb that writes in conversations gets. */
export interface LedgerTx extends StepTx {
  /** As `SharedLedger.alone`. */
  alone(): void;
  /** The owner's conversation. Throws `not_found`. */
  ledgerOf(owner: string, conversation: string): Opened;
  ledgerByNo(conv: number): Opened;
  /** Throws `lease_lost`. */
  ledgerUnder(fence: Fence): Opened;
  conversation(owner: string, id: string): Conversation | Promise<Conversation>;
  findByKey(owner: string, key: string): Conversation | null | Promise<Conversation | null>;
  /** A new conversation without events. Throws `conflict` when its id is taken. */
  insertConversation(
    owner: string,
    spec: NewConversation,
    named: { readonly title: string; readonly source: TitleSource } | null,
  ): Opened;
  /** Its number. */
  registerWorker(worker: WorkerInfo): number | Promise<number>;
  /** A worker is listed while it holds a lease; one that takes up turns, until it is forgotten. */
  dropIdleWorker(worker: number): void;
}

export interface LedgerAccess extends StepAccess {
  /** A verb of a store from one in steps that writes in conversations. */
  changing<A extends unknown[], T>(verb: (tx: LedgerTx, ...args: A) => Steps<T>): (...args: A) => Promise<T>;
}
