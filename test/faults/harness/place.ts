import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { endMarked } from './marked.ts';
import { type Line, Program } from './program.ts';

/** A store outside of the data home. */
export interface StoreElsewhere extends AsyncDisposable {
  readonly url: string;
  rows<Row>(sql: string, values: readonly (string | number)[]): Promise<Row[]>;
}

/** A data home that several processes share. Every agent that is started from it has its mark in the environment. */
export class Place {
  readonly home: string;
  readonly mark: string;
  readonly database: string;
  readonly #dir: string;
  readonly #programs: Program[] = [];
  readonly #elsewhere: StoreElsewhere | null;

  /** Without a store, the database is a file in the data home. */
  constructor(store: StoreElsewhere | null = null) {
    this.#elsewhere = store;
    this.#dir = mkdtempSync(join(tmpdir(), 'throughline-faults-'));
    this.home = join(this.#dir, 'home');
    this.mark = this.#dir.slice(this.#dir.lastIndexOf('-') + 1);
    this.database = join(this.home, 'throughline.db');
    mkdirSync(join(this.#dir, 'effects'));
  }

  /** Options to open the library here, without agents. */
  get opening(): { home: string; store?: string } {
    return { home: this.home, ...(this.#elsewhere !== null && { store: this.#elsewhere.url }) };
  }

  /** The file that the tools of one conversation append to. */
  effects(conversation: string): string {
    return join(this.#dir, 'effects', conversation);
  }

  /** The names of the tools that ran, in order. */
  ran(conversation: string): string[] {
    try {
      const lines = readFileSync(this.effects(conversation), 'utf8').split('\n');
      return lines.filter((line) => line !== '').map((line) => line.split(' ')[0] ?? '');
    } catch {
      return [];
    }
  }

  /** A path for a test's own file. */
  file(name: string): string {
    return join(this.#dir, name);
  }

  start(name: string, input: object, onLine?: (line: Line) => void): Program {
    const program = new Program(name, { ...this.opening, mark: this.mark, ...input }, onLine);
    this.#programs.push(program);
    return program;
  }

  /** What all programs have written to stderr so far. */
  get complaints(): string {
    return this.#programs.map((program) => program.stderr).join('');
  }

  /** Rows of the database, read by plain SQL, without our code. */
  async rows<Row>(sql: string, ...values: (string | number)[]): Promise<Row[]> {
    if (this.#elsewhere !== null) return this.#elsewhere.rows(sql, values);
    const db = new DatabaseSync(this.database, { readOnly: true, timeout: 60_000 });
    try {
      return db.prepare(sql).all(...values) as Row[];
    } finally {
      db.close();
    }
  }

  /** Ends every process that was started here, and removes the files. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.end()));
    await endMarked(this.mark);
    await this.#elsewhere?.[Symbol.asyncDispose]();
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 20 });
  }
}
