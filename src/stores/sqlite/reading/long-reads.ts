import { extname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { errorOf, type Failure, isDamage, ThroughlineError } from '../../../core/errors.ts';
import type { PagedVerb } from '../../shared/verbs/steps.ts';

/*
 * Reads that SQLite does in one step, however long it takes, run in a thread with a connection of its own, so that they do not hold
 * the event loop: searches and long pages. There is one thread, with one question at a time.
 *
 *   none ──ask──▶ asked ──answer──▶ idle ──ask──▶ asked
 *    ▲              │ it takes too long: its caller is refused      │ nothing to do for a while
 *    └──────────────┴───────────── the thread is ended ◀────────────┘
 *
 * Owners take turns. SQLite cannot be interrupted: a thread that is ended in the middle of a step still finishes it, and the next one
 * starts only then, so that there is never more than one.
 */
export type LongRead = PagedVerb | 'search' | 'listConversations' | 'listTasks' | 'eventsBefore' | 'permissions';

export interface ThreadData {
  readonly file: string;
  readonly busyMs: number;
}

export interface Question {
  readonly verb: LongRead;
  readonly args: readonly unknown[];
}

/** One answer to each question, in the same order. `leftOut`: what was wrong with what is damaged and was left out. Anything else that is thrown ends the thread. */
export type Answer = { readonly value: unknown; readonly leftOut: readonly string[] } | { readonly failure: Failure };

export interface LongReadsOptions extends ThreadData {
  /** Called with what is damaged: left out, or the reason why a question could not be answered. */
  readonly onDamage?: (error: unknown) => void;
  /** How long a question may take; left out: 10 seconds. */
  readonly mostMs?: number;
  /** How long the thread is kept without a question; left out: 30 seconds. */
  readonly idleMs?: number;
}

/** How many questions of one owner may wait. */
const MOST_OF_OWNER = 8;
/** Beside this file, compiled or not. */
const PROGRAM = new URL(`long-reads-thread${extname(import.meta.url)}`, import.meta.url);

interface Asked extends Question {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

export class LongReads {
  readonly #options: LongReadsOptions;
  /** By owner, in the order in which they are next. */
  readonly #waiting = new Map<string, Asked[]>();
  #thread: Worker | null = null;
  #asked: Asked | null = null;
  /** Ends a question that takes too long, or a thread that has nothing to do. */
  #timer: NodeJS.Timeout | undefined;
  /** A thread that is being ended. */
  #ending: Promise<unknown> | null = null;

  constructor(options: LongReadsOptions) {
    this.#options = options;
  }

  /** Throws what the verb throws; `too_many`; and `too_large` when it takes too long. */
  ask<T>(owner: string, verb: LongRead, args: readonly unknown[]): Promise<T> {
    const waiting = this.#waiting.get(owner) ?? [];
    if (waiting.length >= MOST_OF_OWNER) throw tooMany(owner);
    return new Promise<T>((resolve, reject) => {
      waiting.push({ verb, args, resolve: resolve as (value: never) => void, reject });
      this.#waiting.set(owner, waiting);
      this.#askNext();
    });
  }

  /** Whether there is a thread now, for tests. */
  get isThere(): boolean {
    return this.#thread !== null;
  }

  /** Refuses what waits. */
  async close(): Promise<void> {
    const closed = new ThroughlineError('closed', 'Throughline is closed.');
    for (const { reject } of [...this.#waiting.values()].flat()) reject(closed);
    this.#waiting.clear();
    this.#takeAsked()?.reject(closed);
    this.#end();
    await this.#ending;
  }

  #askNext(): void {
    if (this.#asked !== null || this.#ending !== null) return;
    clearTimeout(this.#timer);
    this.#asked = this.#next();
    const { mostMs = 10_000, idleMs = 30_000 } = this.#options;
    if (this.#asked === null) {
      this.#timer = setTimeout(() => this.#end(), idleMs).unref();
      return;
    }
    const { verb, args } = this.#asked;
    this.#thread ??= this.#start();
    this.#thread.ref();
    this.#thread.postMessage({ verb, args } satisfies Question);
    this.#timer = setTimeout(() => {
      this.#takeAsked()?.reject(tooSlow(verb, mostMs));
      this.#end();
    }, mostMs);
  }

  /** The oldest question of the owner who is next. */
  #next(): Asked | null {
    for (const [owner, waiting] of this.#waiting) {
      const asked = waiting.shift();
      this.#waiting.delete(owner);
      if (waiting.length > 0) this.#waiting.set(owner, waiting);
      if (asked !== undefined) return asked;
    }
    return null;
  }

  #start(): Worker {
    const { file, busyMs } = this.#options;
    // Loaded now: it takes four milliseconds, and most commands do not search.
    const { Worker } = process.getBuiltinModule('node:worker_threads');
    const thread = new Worker(PROGRAM, { workerData: { file, busyMs } satisfies ThreadData });
    thread.on('message', (answer: Answer) => {
      const asked = this.#takeAsked();
      if ('failure' in answer) this.#fails(asked, errorOf(answer.failure));
      else this.#answers(asked, answer);
      this.#askNext();
    });
    thread.on('error', (error) => {
      this.#takeAsked()?.reject(error);
      this.#end();
    });
    return thread;
  }

  #fails(asked: Asked | null, error: ThroughlineError): void {
    if (isDamage(error)) this.#options.onDamage?.(error);
    asked?.reject(error);
  }

  #answers(asked: Asked | null, { value, leftOut }: Extract<Answer, { value: unknown }>): void {
    for (const what of leftOut) this.#options.onDamage?.(new SyntaxError(what));
    asked?.resolve(value as never);
  }

  /** The question that was asked last; from here on none is. */
  #takeAsked(): Asked | null {
    const asked = this.#asked;
    this.#asked = null;
    clearTimeout(this.#timer);
    // It does not keep the process alive while nobody waits for it.
    this.#thread?.unref();
    return asked;
  }

  #end(): void {
    const thread = this.#thread;
    if (thread === null) return;
    this.#thread = null;
    this.#ending = thread.terminate().finally(() => {
      this.#ending = null;
      if (this.#waiting.size > 0) this.#askNext();
    });
  }
}

function tooMany(owner: string): ThroughlineError {
  return new ThroughlineError('too_many', `"${owner}" has ${MOST_OF_OWNER} searches or long pages waiting already.`, {
    hint: 'Wait until they have ended, and try again.',
  });
}

function tooSlow(verb: LongRead, ms: number): ThroughlineError {
  const [what, hint] =
    verb === 'search'
      ? ['The search', 'Search for fewer turns: with rarer words, or more of them.']
      : ['Reading the page', 'Ask for fewer at once ("limit").'];
  return new ThroughlineError('too_large', `${what} took longer than ${ms / 1_000} s and was ended.`, { hint });
}
