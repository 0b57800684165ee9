/*
 * The two databases of a copy. Statements are those that both understand; `?` stands for a value. Errors of the database are faults of the store
 * (`storage_full` …) where they are known.
 */

export type CopiedValue = string | number | Uint8Array | null;
export type CopiedRow = Readonly<Record<string, CopiedValue>>;

export interface CopySide extends AsyncDisposable {
  all<Row = CopiedRow>(sql: string, ...values: CopiedValue[]): Promise<Row[]>;
  /** The columns of a table that are copied: without those that this database makes itself. */
  columns(table: string): Promise<string[]>;
  /** The first event that does not fit the chain; null: it is whole. */
  firstBroken(chain: Chain): Promise<number | null>;
}

/** Reads a snapshot, whatever is written meanwhile. */
export interface CopySource extends CopySide {
  /** Nobody else uses it, and nobody can until it is closed. */
  readonly isAlone: boolean;
  /** Ends the snapshot, and carries this out durably. Only if it is alone. */
  run(sql: string, ...values: CopiedValue[]): Promise<void>;
}

/** Nobody else uses it. */
export interface CopyTarget extends CopySide {
  /** One transaction: when it resolves, all of it is durable; if it rejects, nothing is. */
  write(work: () => Promise<void>): Promise<void>;
  run(sql: string, ...values: CopiedValue[]): Promise<void>;
  /** Adds rows, or replaces those with the same keys; also in the search index. */
  put(table: string, key: readonly string[], rows: readonly CopiedRow[]): Promise<void>;
  /** Removes these records from the search index. */
  forgetWords(turns: readonly number[]): Promise<void>;
  /** Whether a unique index refused a row. */
  isTaken(error: unknown): boolean;
  /** Releases the lock. From now on the row that `begin` wrote keeps others out. */
  begun(): Promise<void>;
  /** The time that leases are measured in. */
  time(): Promise<number>;
  /** Does what a store of this kind needs after its rows were copied. */
  finish(): Promise<void>;
}

/** A conversation and its last event. */
export interface Chain {
  readonly no: number;
  readonly id: string;
  readonly last: number;
}
