import type { Outcome, Verb } from './batch.ts';
import type { Waits } from './transaction.ts';

/*
 * Verbs that write wait here, and those that wait together share a transaction (batch.ts).
 *
 *   waiting ──▶ until the transaction before it has ended ──▶ at most one verb of each conversation ──▶ shared ──▶ answered after the commit
 *                                                                                                   └─ apart: in a transaction of its own, few at a time
 *
 * The verbs of a conversation run one after the other, in the order in which they were called.
 */

interface Waiting {
  readonly conversation: string;
  readonly verb: Verb;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  /** Given: it has its own transaction, with these time limits. */
  readonly alone: Waits | undefined;
}

interface Transactions {
  /** Rejects when all of them fail. */
  readonly shared: (verbs: readonly Verb[]) => Promise<readonly Outcome[]>;
  readonly own: (verb: Verb, waits?: Waits) => Promise<unknown>;
}

/** How many shared transactions run at the same time. With two, each has half as many verbs, and a turn takes more statements and commits. */
const AT_ONCE = 1;
/** The most verbs in one transaction. */
const MOST = 64;
/** How many verbs run in a transaction of their own at the same time. Each may wait for a lock of another process, and keeps a connection meanwhile. */
const APART_AT_ONCE = 2;

export class WriteQueue {
  readonly #run: Transactions;
  #waiting: Waiting[] = [];
  /** The conversations whose verbs run. */
  readonly #running = new Set<string>();
  #transactions = 0;
  /** How many verbs run in a transaction of their own; and those that wait for one. */
  #apart = 0;
  readonly #toRunApart: Waiting[] = [];
  #due = false;
  readonly #drained: (() => void)[] = [];

  constructor(run: Transactions) {
    this.#run = run;
  }

  /** Resolves with the verb's result once it is durable. A verb that throws changes nothing. `alone`: in a transaction of its own. */
  write<T>(conversation: string, verb: (...args: Parameters<Verb>) => Promise<T>, alone?: Waits): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ conversation, verb, resolve: resolve as (value: never) => void, reject, alone });
      this.#wake();
    });
  }

  /** Resolves when nothing waits or runs any more. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#wake();
    });
  }

  #wake(): void {
    if (this.#due) return;
    this.#due = true;
    // After all writes of this tick.
    process.nextTick(() => {
      this.#due = false;
      while (this.#transactions < AT_ONCE) {
        const taken = this.#take();
        if (taken.length === 0) break;
        void this.#together(taken);
      }
      if (this.#waiting.length === 0 && this.#running.size === 0) for (const done of this.#drained.splice(0)) done();
    });
  }

  #take(): Waiting[] {
    const taken: Waiting[] = [];
    const left: Waiting[] = [];
    for (const one of this.#waiting) {
      if (taken.length >= MOST || this.#running.has(one.conversation)) left.push(one);
      else {
        this.#running.add(one.conversation);
        if (one.alone === undefined) taken.push(one);
        else void this.#alone(one);
      }
    }
    this.#waiting = left;
    return taken;
  }

  async #together(taken: readonly Waiting[]): Promise<void> {
    this.#transactions += 1;
    try {
      const outcomes = await this.#run.shared(taken.map(({ verb }) => verb));
      for (const [i, one] of taken.entries()) this.#answer(one, outcomes[i] ?? { is: 'apart' });
    } catch (error) {
      for (const one of taken) this.#answer(one, { is: 'refused', error });
    } finally {
      this.#transactions -= 1;
      this.#wake();
    }
  }

  #answer(one: Waiting, outcome: Outcome): void {
    if (outcome.is === 'apart') return void this.#runApart(one);
    this.#running.delete(one.conversation);
    if (outcome.is === 'done') one.resolve(outcome.value as never);
    else one.reject(outcome.error);
  }

  #runApart(one?: Waiting): void {
    if (one !== undefined) this.#toRunApart.push(one);
    const next = this.#apart < APART_AT_ONCE ? this.#toRunApart.shift() : undefined;
    if (next === undefined) return;
    this.#apart += 1;
    void this.#alone(next).finally(() => {
      this.#apart -= 1;
      this.#runApart();
    });
  }

  /** The queue does not wait for it: it may have to wait for a lock of another process. */
  async #alone(one: Waiting): Promise<void> {
    const outcome = await this.#run.own(one.verb, one.alone).then(
      (value) => ({ is: 'done', value }) as const,
      (error: unknown) => ({ is: 'refused', error }) as const,
    );
    this.#answer(one, outcome);
    this.#wake();
  }
}
