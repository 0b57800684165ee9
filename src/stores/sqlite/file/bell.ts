import { closeSync, type FSWatcher, openSync, utimesSync, watch } from 'node:fs';
import { type Listener, Listeners } from '../../shared/news.ts';
import type { Database } from './database.ts';
import type { BatchNews } from './write-queue.ts';

/*
 * The bell notifies listeners that conversations or tasks have moved: "read again". It is a hint, and nothing depends on it.
 *
 * Listeners of this process are notified when a batch is committed. Other processes watch a file beside the database, which is
 * touched after the commit; watching SQLite's log would come one commit too early. Two things happen side by side:
 *
 *   hearing of others   off ──first listener──▶ on: a look each time the file is touched ──last listener gone──▶ off
 *
 *   telling others      idle ──commit──▶ due ──at once, or 5 ms after the last touch──▶ touch ──▶ idle
 *
 * So a burst of commits is a few touches. While anybody listens, a look every 500 ms is the
 * safety net: for a file that was deleted, or a system that cannot watch files.
 */
type Telling =
  | { readonly state: 'idle'; readonly touchedAt: number }
  | { readonly state: 'due'; readonly cancel: () => void };

const PAUSE_MS = 5;
const POLL_MS = 500;

export class Bell {
  readonly #file: string;
  readonly #commits: CommitsOfOthers;
  readonly #monotonic: () => number;
  readonly #listeners = new Listeners();
  #watcher: FSWatcher | null = null;
  /** Null: hearing is off. */
  #poll: NodeJS.Timeout | null = null;
  #telling: Telling = { state: 'idle', touchedAt: Number.NEGATIVE_INFINITY };

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
    if (this.#poll === null) this.#startHearing();
    return () => {
      if (remove() && this.#listeners.size === 0) this.#stopHearing();
    };
  }

  close(): void {
    if (this.#telling.state === 'due') this.#touch();
    this.#listeners.clear();
    this.#stopHearing();
  }

  // ── hearing of others ──

  #startHearing(): void {
    this.#commits.start();
    this.#watch();
    this.#poll = setInterval(() => {
      if (this.#watcher === null) this.#watch();
      this.#look();
    }, POLL_MS).unref();
  }

  #stopHearing(): void {
    this.#watcher?.close();
    this.#watcher = null;
    if (this.#poll !== null) clearInterval(this.#poll);
    this.#poll = null;
  }

  #look(): void {
    for (const moved of this.#commits.look()) this.#listeners.call(moved);
  }

  #watch(): void {
    this.#makeFile();
    try {
      const watcher = watch(this.#file, { persistent: false }, (what) => {
        // It was deleted or moved: the poll makes it again and watches the new one.
        if (what === 'rename') this.#unwatch(watcher);
        this.#look();
      });
      watcher.on('error', () => this.#unwatch(watcher));
      this.#watcher = watcher;
    } catch {
      this.#watcher = null;
    }
  }

  #unwatch(watcher: FSWatcher): void {
    watcher.close();
    if (this.#watcher === watcher) this.#watcher = null;
  }

  // ── telling others ──

  /** Not within the commit: those here who waited for it continue first. */
  #touchSoon(): void {
    if (this.#telling.state === 'due') return;
    const wait = this.#telling.touchedAt + PAUSE_MS - this.#monotonic();
    if (wait > 0) {
      const timer = setTimeout(() => this.#touch(), wait).unref();
      this.#telling = { state: 'due', cancel: () => clearTimeout(timer) };
    } else {
      const immediate = setImmediate(() => this.#touch());
      this.#telling = { state: 'due', cancel: () => clearImmediate(immediate) };
    }
  }

  #touch(): void {
    if (this.#telling.state === 'due') this.#telling.cancel();
    this.#telling = { state: 'idle', touchedAt: this.#monotonic() };
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
