import { setTimeout as delay } from 'node:timers/promises';
import { hasCode, isTransientFault, type ThroughlineError } from '../core/errors.ts';
import { wellFormed } from '../core/input/well-formed.ts';
import type { Clock } from '../ports/clock.ts';
import type { Fence } from '../ports/store/leases.ts';
import type { Write } from '../ports/store/writes.ts';
import type { Store } from '../ports/store.ts';

/** What a lease writes with. */
interface LeaseParts {
  readonly store: Pick<Store, 'commit'>;
  readonly clock: Clock;
  /** How long to wait for a full or locked storage. */
  readonly storageMs: number;
  /** Called again and again while the storage cannot be written. */
  readonly onTrouble: (error: ThroughlineError) => void;
}

/**
 * The right of a worker to write a conversation, and its only way to do it. Writes are committed in the order in which they were given,
 * one commit at a time: what arrives during a commit shares the next one. A commit is repeated with the same counter until it is known
 * to have happened. Repeating a commit changes nothing (R5). A commit that fails for good loses the lease: the worker then ends its agents.
 *
 * Trackers and the doctor hold the same leases without this class. Their callers wait for every commit, get its failure, and may try
 * again with the lock that they have.
 */
export class Lease {
  readonly fence: Fence;
  readonly #parts: LeaseParts;
  readonly #lost = new AbortController();
  #counter = 1;
  #given = 0;
  #openTurns: number | null = null;
  #nextAgent: string | null = null;
  /** Each is what one call of `write` gave: it stays together, in one commit. */
  #waiting: Group[] = [];
  #waitingWrites = 0;
  #committing: Promise<void> | null = null;
  /** Commits what was noted. Undefined: nothing was since the last commit began. */
  #noted: NodeJS.Timeout | undefined;
  /** A commit of what an agent has said is scheduled for the end of this tick. */
  #isScheduled = false;
  #isHurried = false;
  /** The turn that could not begin: it was cancelled or replaced, and nothing more is written of it. */
  #refused: { readonly turn: string; readonly error: unknown } | null = null;

  constructor(fence: Fence, parts: LeaseParts) {
    this.fence = fence;
    this.#parts = parts;
  }

  /** Aborts when another worker owns the conversation, or when the storage refuses for good. All work must stop then. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** How many writes were given so far, whether they are durable yet or not. */
  get given(): number {
    return this.#given;
  }

  /** The open turns of the conversation, as the last commit found them; null: nothing was committed yet. */
  get openTurns(): number | null {
    return this.#openTurns;
  }

  /** The agent of the turn that was open next when the last commit ended a turn; null: none was, or the last commit ended none. */
  get nextAgent(): string | null {
    return this.#nextAgent;
  }

  /**
   * Resolves when all of these, and all before them, are durable; all of these in one commit. Rejects with `lease_lost`, with the error of the
   * storage, or with a `conflict` of these writes or of the beginning of their turn. Unpaired surrogates in texts of agents are replaced here.
   */
  write(...writes: Write[]): Promise<void> {
    if (writes.length === 0) return Promise.resolve();
    const written = this.#add(writes);
    this.#start();
    return written;
  }

  /**
   * For what nobody waits for: it shares the next commit, and has one of its own if none comes soon. A commit blocks this process, so
   * that nothing else begins meanwhile. A failure shows in `lost`, except a `conflict`: with that the returned promise rejects. It need not be
   * handled.
   */
  note(write: Write): Promise<void> {
    const noted = this.#add([write]);
    noted.catch(() => {});
    this.#noted ??= setTimeout(() => this.#start(), NOTED_MS);
    return noted;
  }

  /**
   * For what an agent says: committed after all that it says in this moment, so that a turn which ends with it needs no further commit. A failure
   * shows in `lost`.
   */
  say(write: Write): void {
    this.#add([write]).catch(() => {});
    if (!this.#isScheduled) process.nextTick(() => this.#start());
    this.#isScheduled = true;
  }

  /** Resolves when more may be given: a fast agent must not outrun the disk without bound. */
  async ready(): Promise<void> {
    if (this.#waitingWrites > MAX_WAITING) this.#start();
    while (this.#waitingWrites > MAX_WAITING && this.#committing) await this.#committing.catch(() => {});
  }

  /** Resolves when nothing waits to be written any more, successful or not, and readers in this process have read it. */
  async drained(): Promise<void> {
    this.#start();
    while (this.#committing) await this.#committing.catch(() => {});
    // Also after a commit that has just ended: its readers have not been woken yet.
    await new Promise(setImmediate);
  }

  /** The lease was found to be lost by a heartbeat. */
  lose(reason: ThroughlineError): void {
    if (!this.#lost.signal.aborted) this.#lost.abort(reason);
  }

  /** From here on a commit that fails is not repeated: the process ends, and the next one finds out what was not written. */
  hurry(): void {
    this.#isHurried = true;
  }

  #add(writes: readonly Write[]): Promise<void> {
    this.#given += writes.length;
    this.#waitingWrites += writes.length;
    return new Promise<void>((resolve, reject) => this.#waiting.push({ writes: wellFormed(writes), resolve, reject }));
  }

  #start(): void {
    clearTimeout(this.#noted);
    this.#noted = undefined;
    this.#isScheduled = false;
    // What was noted during a commit may have been stored with the next one.
    if (this.#waiting.length > 0) this.#committing ??= this.#drain();
  }

  async #drain(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const batch = this.#takeBatch();
        try {
          await this.#write(batch);
        } catch (error) {
          // One group failed, so nothing of the commit was written. The other groups are not at fault.
          if (hasCode(error, 'conflict') && batch.length > 1) for (const group of batch) await this.#writeAlone(group);
          else this.#fail(error, batch);
        }
      }
    } finally {
      this.#committing = null;
    }
  }

  #takeBatch(): Group[] {
    let writes = 0;
    let groups = 0;
    for (const group of this.#waiting) {
      if (groups > 0 && writes + group.writes.length > MAX_BATCH) break;
      writes += group.writes.length;
      groups += 1;
    }
    this.#waitingWrites -= writes;
    return this.#waiting.splice(0, groups);
  }

  async #write(batch: readonly Group[]): Promise<void> {
    const writes = batch.flatMap((group) => group.writes);
    if (this.#refused !== null && writes.some((write) => turnOf(write) === this.#refused?.turn))
      throw this.#refused.error;
    const counter = this.#counter;
    this.#counter += writes.length;
    await this.#commit(counter, writes);
    for (const group of batch) group.resolve();
  }

  async #writeAlone(group: Group): Promise<void> {
    try {
      await this.#write([group]);
    } catch (error) {
      this.#fail(error, [group]);
    }
  }

  async #commit(counter: number, writes: readonly Write[]): Promise<void> {
    const { store, clock, storageMs, onTrouble } = this.#parts;
    const started = clock.monotonic();
    for (let wait = 20; ; wait = Math.min(wait * 2, 1_000)) {
      this.#lost.signal.throwIfAborted();
      try {
        const { open, next = null } = await store.commit(this.fence, counter, writes);
        this.#openTurns = open;
        this.#nextAgent = next;
        return;
      } catch (error) {
        const isOver = this.#isHurried || clock.monotonic() - started > storageMs;
        if (!isTransientFault(error) || isOver) throw error;
        onTrouble(error);
        await delay(wait);
      }
    }
  }

  /** After a commit that failed for good, nothing more may be written under this lease, except after a `conflict`. */
  #fail(error: unknown, batch: readonly Group[]): void {
    if (!hasCode(error, 'conflict')) this.#lost.abort(error);
    for (const write of batch.flatMap(({ writes }) => writes)) {
      if (write.write === 'begin') this.#refused = { turn: write.turn, error };
    }
    for (const group of batch) group.reject(error);
  }
}

interface Group {
  readonly writes: readonly Write[];
  resolve(): void;
  reject(error: unknown): void;
}

function turnOf(write: Write): string | null {
  if (write.write === 'event') return write.event.turn;
  return 'turn' in write ? write.turn : null;
}

/** Longer than it takes to begin what follows, such as starting a program, and too short for people to notice. */
const NOTED_MS = 5;
const MAX_BATCH = 256;
const MAX_WAITING = 2_000;
