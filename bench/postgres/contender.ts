// The interface of the products that are compared by turns per second. Each product is one file of this folder, which also has the settings
// that it runs with. All of them run on a PostgreSQL with the same settings, each in its own database.

/** How many turns or jobs one process runs at once. */
export const AT_ONCE = 32;
/** More connections do not help on a small machine, and every compared product recommends about this many. */
export const CONNECTIONS = AT_ONCE + 2;
export const PROMPT = text(400);
export const REPLY = text(2_000);

/** Text that compresses badly, as real text does; another one for each `n`. */
export function text(length: number, n = 0): string {
  let words = '';
  for (let i = 1 + n * 1_000; words.length < length; i += 1)
    words += `${((i * 2_654_435_761) % 4_294_967_296).toString(36)} `;
  return words.slice(0, length);
}

export interface WorkerOptions {
  readonly url: string;
  /** How many turns run at once in this process. */
  readonly atOnce: number;
  /** How long the agent takes for its answer. */
  readonly waitMs: number;
  /** A directory that all workers share. */
  readonly folder: string;
}

/** One process that accepts prompts, and works on the prompts of all processes. */
export interface Worker {
  /** Resolves when the prompt is stored for good. The prompts of a conversation are answered one after the other, in this order. */
  submit(conversation: string, n: number): Promise<void>;
  stop(): Promise<void>;
}

export interface Contender {
  /** Makes the tables, before any worker starts. */
  prepare(url: string): Promise<void>;
  open(options: WorkerOptions): Promise<Worker>;
  /** A query for the number of prompts that wait or run: one row with the column `left`. */
  readonly left: string;
  /** A query for the number of replies that are stored once and in order: one row with the column `kept`. */
  readonly kept: string;
}

/** Imports a package of this folder. `T` describes it, because the package is not installed when types are checked. */
export function load<T>(name: string): Promise<T> {
  return import(name);
}

// ── a table for replies: job queues do not store results ──

export const MAKE_REPLIES = `
  CREATE TABLE replies (
    no bigint GENERATED ALWAYS AS IDENTITY, conversation text, n int, reply text NOT NULL, PRIMARY KEY (conversation, n)
  )`;
/** A job that runs twice keeps one reply. */
export const KEEP_REPLY = 'INSERT INTO replies (conversation, n, reply) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING';
export const REPLIES_IN_ORDER = `
  SELECT count(*)::int AS kept FROM (SELECT n, row_number() OVER (PARTITION BY conversation ORDER BY no) AS place FROM replies) r
  WHERE n = place`;
