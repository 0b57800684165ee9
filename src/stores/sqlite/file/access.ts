import { isDamage, isTransientFault, RESTORE_HINT, ThroughlineError, whileWaiting } from '../../../core/errors.ts';
import type { Reason } from '../../../core/health.ts';
import { LOSS_CAUSE, lossInWords } from '../../../core/loss.ts';
import { Pace } from '../../../flow/pace.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { Health } from '../../../ports/health.ts';
import { CommitWatch } from '../loss/commit-watch.ts';
import { DataFile } from '../loss/data-file.ts';
import { losses } from '../loss/losses.ts';
import { type LongRead, LongReads } from '../reading/long-reads.ts';
import { Bell } from './bell.ts';
import type { Database } from './database.ts';
import { damaged, diskFull, storageFault, unwritableFile, whileBusy } from './faults.ts';
import { reopenForWriting } from './open.ts';
import { type BootClock, storeClock } from './store-clock.ts';
import { checkStillOurs } from './upgrade.ts';
import { type Tx, WriteQueue } from './write-queue.ts';

export interface AccessOptions extends BootClock {
  readonly file: string;
  readonly busyMs: number;
  readonly health?: Health;
}

/** How often a process that reads looks whether a newer version has upgraded the database. One that writes does so every time. */
const VERSION_MS = 500;

/** The most values of a page that are read without a thread: it takes a few milliseconds. */
const MOST_HERE = 1_000;

/** How the verbs of a store reach the open database: reads at once, writes through the queue, until it is closed. */
export class Access {
  readonly queue: WriteQueue;
  readonly bell: Bell;
  /** The time of the store. */
  readonly clock: Clock;
  readonly #db: Database;
  readonly #busyMs: number;
  readonly #options: AccessOptions;
  readonly #writing: WriteHealth;
  readonly #longReads: LongReads;
  // Not `performance`: Node takes longer to load that than a read takes.
  readonly #pace = new Pace(() => Number(process.hrtime.bigint()) / 1e6, setImmediate);
  /** Null: the database can only be read. */
  #watch: CommitWatch | null = null;
  /** Null: it is written, or is a copy of our own. */
  #onlyRead: DataFile | null = null;
  #reopening: Promise<void> | null = null;
  /** Null: not yet looked for. False: there are none; they are only found when a database is opened. */
  #saidLosses: boolean | null = null;
  #versionSeenAt = Number.NEGATIVE_INFINITY;
  #closing: Promise<void> | null = null;

  constructor(db: Database, options: AccessOptions) {
    const { file, busyMs } = options;
    const clock = storeClock(db, options.clock);
    this.#db = db;
    this.#busyMs = busyMs;
    this.#options = options;
    this.clock = clock;
    db.onDamage = (error) => this.#writing.fails(storageFault(error) ?? (error as ThroughlineError));
    this.#longReads = new LongReads({ file, busyMs, onDamage: db.onDamage });
    this.bell = new Bell(`${file}.bell`, db, () => clock.monotonic());
    this.#writing = new WriteHealth(options.health, db, {
      look: () => {
        this.#sayLosses();
        return this.#fault();
      },
      tryToWrite: () => this.write((tx) => tx.db.run(TOUCH)),
    });
    this.queue = new WriteQueue(db, {
      ...{ busyMs, clock },
      watch: () => this.#watch as CommitWatch,
      committed: (news) => {
        this.#writing.works();
        this.bell.notify(news);
      },
      refused: (fault) => this.#writing.fails(fault),
    });
    if (!db.onlyReads) this.#watchCommits();
    else {
      this.#writing.fails(db.isUnwritable ? unwritableFile() : diskFull());
      if (!db.isCopy) this.#onlyRead = new DataFile(file);
    }
    if (db.isCut) this.#writing.fails(damaged());
    this.#sayLosses();
  }

  /** Until somebody acknowledges them, in this process or another. */
  #sayLosses(): void {
    if (this.#options.health === undefined || this.#saidLosses === false) return;
    const last = losses(this.#db).at(-1);
    const changed = (this.#saidLosses ?? false) !== (last !== undefined);
    this.#saidLosses = last !== undefined;
    if (!changed) return;
    const reason = last && { message: lossInWords(last), hint: `${LOSS_CAUSE} "throughline doctor" names it.` };
    this.#options.health.report('losses', reason ? { code: 'storage_lost', ...reason, unready: false } : null);
  }

  /** At once; or, when reads have taken long in this turn of the event loop, in a later one. Always in the order of the calls. */
  async read<T>(look: (db: Database) => T): Promise<T> {
    try {
      if (this.#pace.isOver) await this.#pace.next();
      // Only writers need its result; a reader waits until it is over.
      if (this.#reopening !== null) await this.#reopening.catch(() => {});
      return await whileBusy(() => {
        this.checkOpen();
        this.#checkVersion();
        return look(this.#db);
      }, this.#busyMs);
    } catch (error) {
      const fault = storageFault(error) ?? error;
      if (!isDamage(fault)) throw fault;
      // A file that was cut off gives the same fault as a damaged one.
      const found = this.#fault() ?? (fault as ThroughlineError);
      this.#writing.fails(found);
      throw found;
    }
  }

  #checkVersion(): void {
    const now = this.clock.monotonic();
    if (now - this.#versionSeenAt < VERSION_MS) return;
    try {
      checkStillOurs(this.#db);
    } catch (error) {
      if (error instanceof ThroughlineError) this.#writing.fails(error);
      throw error;
    }
    this.#versionSeenAt = now;
  }

  /** `turnOf`: the conversation whose turn waits for this. */
  async write<T>(verb: (tx: Tx) => T, turnOf?: string): Promise<T> {
    this.checkOpen();
    if (this.#watch === null) await this.#reopen();
    return this.queue.write(verb, turnOf);
  }

  /** The disk was full when the database was opened; there may be space now. */
  #reopen(): Promise<void> {
    this.#reopening ??= reopenForWriting(this.#db, this.#options)
      .then(() => this.#watchCommits())
      .finally(() => {
        this.#reopening = null;
      });
    return this.#reopening;
  }

  #watchCommits(): void {
    this.#watch = new CommitWatch(this.#db, this.#options.file);
    this.#onlyRead = null;
  }

  /** Null: the file that was opened is at its path, and whole. */
  #fault(): ThroughlineError | null {
    return (this.#watch ?? this.#onlyRead)?.fault() ?? null;
  }

  /** A verb of the store from a function that only reads. */
  reading<A extends unknown[], T>(look: (db: Database, ...args: A) => T): (...args: A) => Promise<T> {
    return (...args) => this.read((db) => look(db, ...args));
  }

  /** A verb of the store from a function that writes. */
  writing<A extends unknown[], T>(verb: (tx: Tx, ...args: A) => T): (...args: A) => Promise<T> {
    return (...args) => this.write((tx) => verb(tx, ...args));
  }

  /** A verb from a function that only reads and may take long in one step: in a thread. */
  inThread<A extends unknown[], T>(
    verb: LongRead,
    look: (db: Database, owner: string, ...args: A) => T,
  ): (owner: string, ...args: A) => Promise<T> {
    return async (owner, ...args) => {
      this.checkOpen();
      // Then another connection could not use the database, or would open or make another file at its path.
      if (this.#db.onlyReads || this.#fault()) return this.read((db) => look(db, owner, ...args));
      return this.#longReads.ask(owner, verb, [owner, ...args]);
    };
  }

  /** A verb that reads a page, as large as its caller asks for: a long one in a thread. */
  paging<A extends unknown[], T>(
    verb: LongRead,
    look: (db: Database, owner: string, ...args: A) => T,
  ): (owner: string, ...args: A) => Promise<T> {
    const [here, inThread] = [this.reading(look), this.inThread(verb, look)];
    return (owner, ...args) => {
      const { limit = 0 } = (args.at(-1) ?? {}) as { readonly limit?: number };
      return limit > MOST_HERE ? inThread(owner, ...args) : here(owner, ...args);
    };
  }

  /** A verb that renews leases. One whose row is damaged counts as lost, and does not keep the others from being renewed. */
  renewing<F>(renew: (tx: Tx, fences: readonly F[], leaseMs: number) => F[]) {
    return async (fences: readonly F[], leaseMs: number): Promise<F[]> => {
      try {
        return await this.write((tx) => renew(tx, fences, leaseMs));
      } catch (error) {
        if (!isDamage(error)) throw error;
      }
      const lost = fences.map((fence) =>
        this.write((tx) => renew(tx, [fence], leaseMs)).catch((error: unknown) => {
          if (isDamage(error)) return [fence];
          throw error;
        }),
      );
      return (await Promise.all(lost)).flat();
    };
  }

  checkOpen(): void {
    if (this.#closing !== null) throw new ThroughlineError('closed', 'Throughline is closed.');
  }

  /** Throws `storage_gone` when another file, a part of it, or none is at the path of the one that was opened. */
  checkFile(): void {
    this.checkOpen();
    const fault = this.#fault();
    if (fault !== null) throw fault;
  }

  /** Writes what waits, and closes. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.queue.drained().then(async () => {
      await this.#reopening?.catch(() => {});
      this.#writing.close();
      await this.#longReads.close();
      this.bell.close();
      this.#watch?.close();
      this.#db.close();
    });
    return this.#closing;
  }
}

/** Writes a row without changing it. */
const TOUCH = "UPDATE facts SET value = value WHERE owner = '' AND name = 'log'";
const CHANGES = 'SELECT total_changes() AS n';
const TRY_MS = 5_000;
const LOOK_MS = 1_000;

/** Reported until the process ends: a database that was damaged once is not trusted again. */
const DAMAGED: Reason = {
  code: 'storage_damaged',
  message: 'A part of the database is damaged. Conversations in it cannot be read or continued; all others still work.',
  hint: `"throughline doctor" says what is damaged. ${RESTORE_HINT}`,
  unready: false,
};

/**
 * Reports damage, and while the file cannot be written. It looks by itself whether that has begun or passed: a server without work writes
 * nothing. A commit without a change needs no space, and proves nothing.
 */
class WriteHealth {
  readonly #health: Health | undefined;
  readonly #db: Database;
  readonly #tryToWrite: () => Promise<unknown>;
  readonly #lookout: NodeJS.Timeout | undefined;
  /** The changes so far when it last failed; null: it works. */
  #failedAt: number | null = null;
  #timer: NodeJS.Timeout | null = null;

  /** `look`: what can be seen without writing. */
  constructor(
    health: Health | undefined,
    db: Database,
    { look, tryToWrite }: { look: () => ThroughlineError | null; tryToWrite: () => Promise<unknown> },
  ) {
    this.#health = health;
    this.#db = db;
    this.#tryToWrite = tryToWrite;
    if (health === undefined) return;
    this.#lookout = setInterval(() => {
      const fault = look();
      if (fault !== null) this.fails(fault);
    }, LOOK_MS).unref();
  }

  fails(fault: ThroughlineError): void {
    if (isDamage(fault)) this.#health?.report('damage', DAMAGED);
    if (fault.code === 'storage_newer') this.#ends(fault);
    if (this.#health === undefined || !isTransientFault(fault)) return;
    const { code, message, hint = '' } = whileWaiting(fault);
    this.#health.report('writing', { code, message, hint, unready: code === 'storage_gone' });
    this.#failedAt = this.#changes();
    // A refusal of this write comes back here by the queue.
    this.#timer ??= setInterval(() => void this.#tryToWrite().catch(() => {}), TRY_MS).unref();
  }

  /** It does not pass: only a restart with the newer version helps. */
  #ends({ code, message, hint = '' }: ThroughlineError): void {
    this.#health?.report('version', { code, message, hint, unready: true });
  }

  works(): void {
    if (this.#failedAt === null || this.#changes() === this.#failedAt) return;
    this.#failedAt = null;
    this.#stopTrying();
    this.#health?.report('writing', null);
  }

  close(): void {
    clearInterval(this.#lookout);
    this.#stopTrying();
  }

  #stopTrying(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #changes(): number {
    return this.#db.one<{ n: number }>(CHANGES)?.n ?? 0;
  }
}
