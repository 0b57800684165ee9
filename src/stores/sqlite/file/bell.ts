import { closeSync, type FSWatcher, openSync, utimesSync, watch } from 'node:fs';
import type { Database } from './database.ts';
import type { News } from './write-queue.ts';

/*
 * The bell says "read again". Within this process listeners are called when a batch is committed. Other processes watch a
 * file beside the database that is touched after each commit; watching the log itself would come one commit too early. A
 * slow look at SQLite's own counter is the safety net, for a file that was deleted or a system that cannot watch.
 */
export type Listener = (moved: readonly string[] | null, own?: ReadonlySet<string>) => void;

const GATHER_MS = 5;
const POLL_MS = 500;
/** More new events than this are not looked at one by one: anything may have changed. */
const TOO_MANY = 5000;

const VERSION = 'PRAGMA data_version';
const LAST = 'SELECT max(no) AS no FROM events';
const MOVED = 'SELECT id FROM conversations WHERE no IN (SELECT conv FROM events WHERE no > ? AND no <= ?)';
const LAST_OF_TASKS = 'SELECT max(no) AS no FROM task_events';
const MOVED_TASKS = 'SELECT id FROM tasks WHERE no IN (SELECT task FROM task_events WHERE no > ? AND no <= ?)';
const CLAIMABLE = "SELECT 1 FROM leases WHERE driver = 'worker' AND pending > 0 AND ready_at <= ? LIMIT 1";

export class Bell {
  readonly #file: string;
  readonly #db: Database;
  readonly #monotonic: () => number;
  readonly #listeners = new Set<Listener>();
  #watcher: FSWatcher | null = null;
  #poll: NodeJS.Timeout | null = null;
  #pause: NodeJS.Timeout | null = null;
  #again = false;
  /** Calls off a touch that is to come; null: none is. */
  #callOff: (() => void) | null = null;
  #touchedAt = Number.NEGATIVE_INFINITY;
  /** The last event that listeners know of, and the counter of other connections' commits. */
  #last = 0;
  #lastOfTasks = 0;
  #version = 0;

  constructor(file: string, db: Database, monotonic: () => number) {
    this.#file = file;
    this.#db = db;
    this.#monotonic = monotonic;
  }

  /** After a commit of this process. */
  ring(news: News): void {
    if (news.conversations.length === 0) return;
    this.#touchSoon();
    // Only when nobody else's event lies between; else the next look finds them, and these once more.
    if (news.events !== null && news.events.first === this.#last + 1) this.#last = news.events.last;
    this.#tell(news.conversations, news.own);
  }

  listen(listener: Listener): () => void {
    // A function of its own, so that the same listener given twice is called twice and stopped apart.
    const apart: Listener = (moved, own) => listener(moved, own);
    this.#listeners.add(apart);
    if (this.#listeners.size === 1) this.#start();
    return () => {
      if (this.#listeners.delete(apart) && this.#listeners.size === 0) this.#stop();
    };
  }

  close(): void {
    if (this.#callOff !== null) this.#touch();
    this.#listeners.clear();
    this.#stop();
  }

  #start(): void {
    try {
      this.#last = this.#lastEvent();
      this.#lastOfTasks = this.#lastTaskEvent();
      this.#version = this.#dataVersion();
    } catch {
      // Then the first look takes everything for new, which is only a hint too many.
    }
    this.#watch();
    this.#poll = setInterval(() => {
      if (this.#watcher === null) this.#watch();
      this.#look();
    }, POLL_MS).unref();
  }

  #stop(): void {
    this.#watcher?.close();
    this.#watcher = null;
    if (this.#poll !== null) clearInterval(this.#poll);
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#poll = this.#pause = null;
    this.#again = false;
  }

  /**
   * When those here who waited for the commit have gone on, and once for a burst: whoever listens elsewhere does not look more
   * often than that either, and the file is watched by ourselves as well.
   */
  #touchSoon(): void {
    if (this.#callOff !== null) return;
    const wait = this.#touchedAt + GATHER_MS - performance.now();
    if (wait > 0) {
      const timer = setTimeout(() => this.#touch(), wait).unref();
      this.#callOff = () => clearTimeout(timer);
    } else {
      const immediate = setImmediate(() => this.#touch());
      this.#callOff = () => clearImmediate(immediate);
    }
  }

  #touch(): void {
    this.#callOff?.();
    this.#callOff = null;
    this.#touchedAt = performance.now();
    const now = Date.now() / 1000;
    try {
      utimesSync(this.#file, now, now);
    } catch {
      this.#make();
    }
  }

  #make(): void {
    try {
      closeSync(openSync(this.#file, 'a', 0o600));
    } catch {
      // Without the file the slow look remains.
    }
  }

  #watch(): void {
    this.#make();
    try {
      const watcher = watch(this.#file, { persistent: false }, (what) => {
        if (what === 'rename') this.#unwatch(watcher);
        this.#heard();
      });
      watcher.on('error', () => this.#unwatch(watcher));
      this.#watcher = watcher;
    } catch {
      this.#watcher = null;
    }
  }

  /** The file was deleted or moved: the slow look makes it again and watches the new one. */
  #unwatch(watcher: FSWatcher): void {
    watcher.close();
    if (this.#watcher === watcher) this.#watcher = null;
  }

  /** Looks at once, and then not again before GATHER_MS: a burst is two looks. */
  #heard(): void {
    if (this.#pause !== null) {
      this.#again = true;
      return;
    }
    this.#look();
    this.#pause = setTimeout(() => {
      this.#pause = null;
      const again = this.#again;
      this.#again = false;
      if (again) this.#heard();
    }, GATHER_MS).unref();
  }

  /** What have other processes done? Our own commits do not move SQLite's counter. */
  #look(): void {
    if (this.#listeners.size === 0) return;
    try {
      const version = this.#dataVersion();
      if (version === this.#version) return;
      const last = this.#lastEvent();
      const from = this.#last;
      this.#version = version;
      this.#last = last;
      this.#lookAtTasks();
      if (last - from > TOO_MANY) this.#tell(null);
      else if (last > from) this.#tell(this.#db.all<{ id: string }>(MOVED, from, last).map(({ id }) => id));
      else if (this.#db.one(CLAIMABLE, this.#monotonic()) !== undefined) this.#tell(null);
    } catch {
      // Locked or out of order just now: the next look comes soon, and the bell is only a hint.
    }
  }

  #lookAtTasks(): void {
    const from = this.#lastOfTasks;
    const last = this.#lastTaskEvent();
    this.#lastOfTasks = last;
    if (last - from > TOO_MANY) this.#tell(null);
    else if (last > from) this.#tell(this.#db.all<{ id: string }>(MOVED_TASKS, from, last).map(({ id }) => id));
  }

  #tell(moved: readonly string[] | null, own?: ReadonlySet<string>): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(moved, own);
      } catch (error) {
        // A listener's fault is a bug of its own; it must not undo what was committed.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #lastEvent(): number {
    return this.#db.one<{ no: number | null }>(LAST)?.no ?? 0;
  }

  #lastTaskEvent(): number {
    return this.#db.one<{ no: number | null }>(LAST_OF_TASKS)?.no ?? 0;
  }

  #dataVersion(): number {
    return this.#db.one<{ data_version: number }>(VERSION)?.data_version ?? 0;
  }
}
