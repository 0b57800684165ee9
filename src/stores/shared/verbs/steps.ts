import type { ContentSource, Json } from '../content.ts';

/*
 * Verbs that all stores carry out by the same statements are written once, here. SQLite answers a statement at once and PostgreSQL later, so such a
 * verb is a generator: it yields its statements and is given their answers, and each store has its own loop for that (`carryOut`).
 *
 *   shared:   const row = yield* one<TaskRow>(BY_ID, id, owner)
 *   SQLite:   asks the open file, in the same tick
 *   PostgreSQL: asks the connection of the transaction, and waits
 *
 * A statement is one that both databases understand. `?` stands for a value, or `?1`, `?2` … where one is used twice.
 */

export type StepValue = string | number | Uint8Array | null;

/** The error for a statement that a unique index has refused. `index`: its name, of the form `table_column`. */
export type Taken = (index: string, cause: unknown) => Error;

export type Step =
  | {
      readonly how: 'one' | 'all' | 'each' | 'insert' | 'changed' | 'run' | 'lock';
      readonly text: string;
      readonly values: readonly StepValue[];
      /** Only with `run`. */
      readonly taken?: Taken;
    }
  | { readonly how: 'together'; readonly steps: readonly Steps<unknown>[] }
  | { readonly how: 'contents'; readonly owner: string; readonly values: readonly Json[] }
  | { readonly how: 'act'; readonly act: () => unknown };

/** What a verb does, step by step, and what it returns. */
export type Steps<T> = Generator<Step, T, unknown>;

/** What a verb that writes gets. */
export interface StepTx {
  /** Wall time; and the time that leases are measured in. */
  readonly now: number;
  readonly monotonic: number;
  /** Reports that a conversation or task has changed. */
  moved(id: string): void;
  /** Whether a unique index refused a statement. */
  isTaken(error: unknown): boolean;
}

type Verb<A extends unknown[], T> = (...args: A) => Promise<T>;

/** Verbs that read a page, which may be long. */
export type PagedVerb =
  | ('outline' | 'pending' | 'queued' | 'recordsAfter' | 'recordsBefore' | 'restores')
  | ('listSandboxes' | 'taskUsage' | 'usageDays');

/** Makes verbs of a store from verbs in steps. */
export interface StepAccess {
  reading<A extends unknown[], T>(verb: (...args: A) => Steps<T>): Verb<A, T>;
  /** The same for a verb that reads a page, as large as its caller asks for. A store may do that in a thread, which knows the verb by its name. */
  paging<A extends unknown[], T>(
    name: PagedVerb,
    verb: (owner: string, ...args: A) => Steps<T>,
  ): Verb<[string, ...A], T>;
  /** The same for short reads that turns need. */
  looking<A extends unknown[], T>(verb: (...args: A) => Steps<T>): Verb<A, T>;
  /** The same, with the time that leases are measured in. */
  lookingAt<A extends unknown[], T>(verb: (monotonic: number, ...args: A) => Steps<T>): Verb<A, T>;
  writing<A extends unknown[], T>(verb: (tx: StepTx, ...args: A) => Steps<T>): Verb<A, T>;
}

/** The first row; undefined: none. */
export function* one<Row>(text: string, ...values: StepValue[]): Steps<Row | undefined> {
  return (yield { how: 'one', text, values }) as Row | undefined;
}

export function* all<Row>(text: string, ...values: StepValue[]): Steps<Row[]> {
  return (yield { how: 'all', text, values }) as Row[];
}

/** The same for a page that may end early: SQLite reads row by row. */
export function* each<Row>(text: string, ...values: StepValue[]): Steps<Iterable<Row>> {
  return (yield { how: 'each', text, values }) as Iterable<Row>;
}

/** Where the separate strings of these values are read from. */
export function* contents(owner: string, values: readonly Json[]): Steps<ContentSource> {
  return (yield { how: 'contents', owner, values }) as ContentSource;
}

/** Runs a function of the store, for what each store does in its own way. */
export function* act<T>(work: () => T | Promise<T>): Steps<T> {
  return (yield { how: 'act', act: work }) as T;
}

/** Adds a row, and returns its number (`no`). */
export function* insert(text: string, ...values: StepValue[]): Steps<number> {
  return (yield { how: 'insert', text, values }) as number;
}

/** How many rows were changed. */
export function* changed(text: string, ...values: StepValue[]): Steps<number> {
  return (yield { how: 'changed', text, values }) as number;
}

/** A statement whose answer is not needed. On PostgreSQL it is sent without waiting. */
export function* run(text: string, ...values: StepValue[]): Steps<void> {
  yield { how: 'run', text, values };
}

/** The same for a statement that a unique index may refuse. */
export function* runUnlessTaken(taken: Taken, text: string, ...values: StepValue[]): Steps<void> {
  yield { how: 'run', text, values, taken };
}

type Answers<T extends readonly Steps<unknown>[]> = {
  -readonly [I in keyof T]: T[I] extends Steps<infer R> ? R : never;
};

/** Several steps that do not depend on each other. PostgreSQL is sent their statements at once, and runs them one after the other. */
export function* together<const T extends readonly Steps<unknown>[]>(...steps: T): Steps<Answers<T>> {
  return (yield { how: 'together', steps }) as Answers<T>;
}

/** Locks these rows until the transaction ends. Does nothing on SQLite, which has one writer at a time. */
export function* lock(text: string, ...values: StepValue[]): Steps<void> {
  yield { how: 'lock', text, values };
}

/** Runs the steps. When a unique index refuses a statement, throws the error from `fault` instead. */
export function* orTaken<T>(tx: StepTx, steps: Steps<T>, fault: (cause: unknown) => Error): Steps<T> {
  try {
    return yield* steps;
  } catch (error) {
    throw tx.isTaken(error) ? fault(error) : error;
  }
}

/** With a bare parameter SQLite plans the statement again at every use, which takes longer than a short read. */
export const LIMIT = 'LIMIT CAST(? AS bigint)';

/**
 * Keeps PostgreSQL from using an index on this column: `WHERE id = ? AND ${unindexed('owner')} = ?`. It keeps the plan that it made for empty tables, where
 * all indexes look alike. With the wrong index it would read all rows of an owner, or all turns of a conversation.
 */
export const unindexed = (text: string) => `(${text} || '')`;
export const unindexedNo = (number: string) => `(${number} + 0)`;

/** Another transaction stored the same at the same moment. Run again, this one finds it. */
export class Collision extends Error {}
