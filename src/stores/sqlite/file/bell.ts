import { closeSync, type FSWatcher, openSync, utimesSync, watch } from 'node:fs';
import { type Listener, Listeners } from '../../shared/news.ts';
import type { Database } from './database.ts';
import type { BatchNews } from './write-queue.ts';

/*
 * The bell notifies listeners that conversations or tasks have moved: "read again". It is a hint, and nothing depends on it.
 *
 * Listeners of this process are notified when a batch is committed. Other processes watch a file beside the database, which is
 * touched after the commit; watching SQLite's log would come one commit too early. Receiving and sending are independent:
 *
 *   receiving   off ──first listener──▶ polling ──the file can be watched──▶ watching: a look each time the file is touched
 *                                          ◀──the file was deleted or moved──┘
 *               off ◀──last listener gone── from both
 *
 *   sending     idle ──commit──▶ due ──at once, or 5 ms after the last touch──▶ touch ──▶ idle
 *
 * So a burst of commits is a few touches. A look every 500 ms is the safety net in both states of receiving; while polling, it
 * also tries again to watch the file.
 */
type Receiving =
  | { readonly state: 'off' }
  | { readonly state: 'polling'; readonly poll: NodeJS.Timeout }
  | { readonly state: 'watching'; readonly poll: NodeJS.Timeout; readonly watcher: FSWatcher };

type Sending =
  | { readonly state: 'idle'; readonly touchedAt: number }
  | { readonly state: 'due'; readonly cancel: () => void };

const PAUSE_MS = 5;
const POLL_MS = 500;

export class Bell {
  readonly #file: string;
  readonly #commits: CommitsOfOthers;
  readonly #monotonic: () => number;
  readonly #listeners = new Listeners();
  #receiving: Receiving = { state: 'off' };
  #sending: Sending = { state: 'idle', touchedAt: Number.NEGATIVE_INFINITY };

  constructor(file: string, db: Database, monotonic: () => number) {
    this.#file = file;
    this.#commits = new CommitsOfOthers(db, monotonic);
    this.#monotonic = monotonic;
  }

  /** After a commit of this process. */
  notify(news: BatchNews): void {
    if (news.ids.length === 0) return;
    this.#touchSoon();
    this.#commits.skip(news);
    this.#listeners.call(news.ids, news.own);
  }

  listen(listener: Listener): () => void {
    const remove = this.#listeners.add(listener);
    if (this.#receiving.state === 'off') this.#startReceiving();
    return () => {
      if (remove() && this.#listeners.size === 0) this.#stopReceiving();
    };
  }

  close(): void {
    if (this.#sending.state === 'due') this.#touch();
    this.#listeners.clear();
    this.#stopReceiving();
  }

  // ── receiving ──

  #startReceiving(): void {
    this.#commits.start();
    const poll = setInterval(() => {
      this.#watch();
      this.#look();
    }, POLL_MS).unref();
    this.#receiving = { state: 'polling', poll };
    this.#watch();
  }

  #stopReceiving(): void {
    const receiving = this.#receiving;
    this.#receiving = { state: 'off' };
    if (receiving.state === 'watching') receiving.watcher.close();
    if (receiving.state !== 'off') clearInterval(receiving.poll);
  }

  #look(): void {
    for (const moved of this.#commits.look()) this.#listeners.call(moved);
  }

  /** Does nothing if the file is watched already. */
  #watch(): void {
    if (this.#receiving.state !== 'polling') return;
    this.#makeFile();
    try {
      const watcher = watch(this.#file, { persistent: false }, (what) => {
        // It was deleted or moved: the poll makes it again and watches the new one.
        if (what === 'rename') this.#unwatch(watcher);
        this.#look();
      });
      watcher.on('error', () => this.#unwatch(watcher));
      this.#receiving = { ...this.#receiving, state: 'watching', watcher };
    } catch {
      // The file cannot be watched now. The next poll tries again.
    }
  }

  #unwatch(watcher: FSWatcher): void {
    watcher.close();
    const receiving = this.#receiving;
    if (receiving.state !== 'watching' || receiving.watcher !== watcher) return;
    this.#receiving = { state: 'polling', poll: receiving.poll };
  }

  // ── sending ──

  /** Not within the commit: those here who waited for it continue first. */
  #touchSoon(): void {
    if (this.#sending.state === 'due') return;
    const wait = this.#sending.touchedAt + PAUSE_MS - this.#monotonic();
    if (wait > 0) {
      const timer = setTimeout(() => this.#touch(), wait).unref();
      this.#sending = { state: 'due', cancel: () => clearTimeout(timer) };
    } else {
      const immediate = setImmediate(() => this.#touch());
      this.#sending = { state: 'due', cancel: () => clearImmediate(immediate) };
    }
  }

  #touch(): void {
    if (this.#sending.state === 'due') this.#sending.cancel();
    this.#sending = { state: 'idle', touchedAt: this.#monotonic() };
    const now = Date.now() / 1000;
    try {
      utimesSync(this.#file, now, now);
    } catch {
      this.#makeFile();
    }
  }

  #makeFile(): void {
    try {
      closeSync(openSync(this.#file, 'a', 0o600));
    } catch {
      // Without the file the poll remains.
    }
  }
}

const VERSION = 'PRAGMA data_version';
const CLAIMABLE = "SELECT 1 FROM leases WHERE driver = 'worker' AND pending > 0 AND ready_at <= ? LIMIT 1";
const EVENTS = {
  last: 'SELECT max(no) AS no FROM events',
  moved: 'SELECT id FROM conversations WHERE no IN (SELECT conv FROM events WHERE no > ? AND no <= ?)',
};
const TASK_EVENTS = {
  last: 'SELECT max(no) AS no FROM task_events',
  moved: 'SELECT id FROM tasks WHERE no IN (SELECT task FROM task_events WHERE no > ? AND no <= ?)',
};
/** More new events than this are not looked at one by one: anything may have changed. */
const TOO_MANY = 5000;

/** What other processes have committed since the last look. */
class CommitsOfOthers {
  readonly #db: Database;
  readonly #monotonic: () => number;
  /** SQLite's counter of other connections' commits. */
  #version = 0;
  /** The last events that listeners know of. */
  #event = 0;
  #taskEvent = 0;

  constructor(db: Database, monotonic: () => number) {
    this.#db = db;
    this.#monotonic = monotonic;
  }

  /** From here on. */
  start(): void {
    try {
      this.#event = this.#last(EVENTS);
      this.#taskEvent = this.#last(TASK_EVENTS);
      this.#version = this.#dataVersion();
    } catch {
      // The first look then reports everything as changed. An unneeded notification does no harm.
    }
  }

  /** Skips a commit of this process: listeners know of it. If another process wrote an event before it, the next look reports both. */
  skip({ events }: BatchNews): void {
    if (events[0]?.no === this.#event + 1) this.#event += events.length;
  }

  /** Lists of what has moved; null: anything may have. */
  look(): (readonly string[] | null)[] {
    try {
      const version = this.#dataVersion();
      if (version === this.#version) return [];
      const [event, taskEvent] = [this.#last(EVENTS), this.#last(TASK_EVENTS)];
      const moved = [
        ...this.#moved(TASK_EVENTS, this.#taskEvent, taskEvent),
        ...this.#moved(EVENTS, this.#event, event),
      ];
      // A lease that was given back is no event.
      if (event === this.#event && this.#db.one(CLAIMABLE, this.#monotonic()) !== undefined) moved.push(null);
      [this.#version, this.#event, this.#taskEvent] = [version, event, taskEvent];
      return moved;
    } catch {
      // Locked just now: the next look finds the same.
      return [];
    }
  }

  #moved({ moved }: typeof EVENTS, from: number, to: number): (readonly string[] | null)[] {
    if (to <= from) return [];
    return [to - from > TOO_MANY ? null : this.#db.all<{ id: string }>(moved, from, to).map(({ id }) => id)];
  }

  #last({ last }: typeof EVENTS): number {
    return this.#db.one<{ no: number | null }>(last)?.no ?? 0;
  }

  #dataVersion(): number {
    return this.#db.one<{ data_version: number }>(VERSION)?.data_version ?? 0;
  }
}
