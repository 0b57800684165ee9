import { randomUUID } from 'node:crypto';
import { answered, type Client, type Server } from './connect.ts';

/*
 * The bell notifies listeners that conversations or tasks have moved: "read again". It is a hint, and nothing depends on it.
 *
 * Listeners of this process are notified when a transaction is committed. Others are told by NOTIFY after the commit, with ids alone:
 * inside of the transaction it would take a lock that all commits wait for. A burst of commits is one NOTIFY.
 *
 *   hearing of others   off ──open──▶ on: LISTEN on a connection of its own ──it ends──▶ tried again every second, then "anything may have moved"
 *
 *   telling others      idle ──commit──▶ due ──10 ms──▶ NOTIFY ──▶ idle
 *
 * A process that is killed between its commit and its NOTIFY tells nobody. So, while anybody listens, a slow look asks whether there
 * were transactions at all.
 */

/** `moved` null: anything may have. `own`: those of them that only the holder of their lease has written. */
export type Listener = (moved: readonly string[] | null, own?: ReadonlySet<string>) => void;

const CHANNEL = 'throughline';
const PAUSE_MS = 10;
const RETRY_MS = 1_000;
/** How long to wait for an answer on the connection for hearing. */
const HEARING_MS = 5_000;
/** A payload has at most 8,000 bytes; an id takes 39. */
const MOST_IDS = 150;
const TELL = 'SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p';
const LAST_TRANSACTION = 'SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS last';

/** What a transaction has changed. */
export class News {
  readonly #ids = new Set<string>();
  readonly #asked = new Set<string>();

  readonly add = (id: string, own = false): void => {
    this.#ids.add(id);
    if (!own) this.#asked.add(id);
  };

  get ids(): string[] {
    return [...this.#ids];
  }

  /** Those that only the holder of their lease has written. */
  get own(): ReadonlySet<string> {
    return this.#ids.difference(this.#asked);
  }
}

export class Bell {
  readonly #server: Server;
  readonly #self = randomUUID();
  readonly #listeners = new Set<Listener>();
  readonly #due = new Set<string>();
  #client: Client | null = null;
  #telling: NodeJS.Timeout | null = null;
  #told: Promise<void> = Promise.resolve();
  #retry: NodeJS.Timeout | null = null;
  #poll: NodeJS.Timeout | null = null;
  #last = '';
  #isAsked = false;
  #isClosed = false;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Hears of others from here on. */
  static async open(server: Server, pollMs: number): Promise<Bell> {
    const bell = new Bell(server);
    await bell.#hear();
    bell.#poll = setInterval(() => void bell.#look().catch(() => {}), pollMs).unref();
    return bell;
  }

  listen(listener: Listener): () => void {
    // A function of its own: the same listener given twice is called twice, and each is stopped by itself.
    const own: Listener = (moved, byHolder) => listener(moved, byHolder);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** After a commit of this process. */
  notify(news: News): void {
    const { ids, own } = news;
    if (ids.length === 0) return;
    for (const id of ids) this.#due.add(id);
    this.#telling ??= setTimeout(() => this.#tell(), PAUSE_MS);
    this.#call(ids, own);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    if (this.#poll !== null) clearInterval(this.#poll);
    if (this.#retry !== null) clearTimeout(this.#retry);
    if (this.#telling !== null) this.#tell();
    await this.#told;
    await this.#client?.end().catch(() => {});
  }

  // ── telling others ──

  #tell(): void {
    if (this.#telling !== null) clearTimeout(this.#telling);
    this.#telling = null;
    const ids = [...this.#due];
    this.#due.clear();
    const parts = Array.from({ length: Math.ceil(ids.length / MOST_IDS) }, (_, i) =>
      ids.slice(i * MOST_IDS, (i + 1) * MOST_IDS),
    );
    const payloads = parts.map((moved) => JSON.stringify({ by: this.#self, moved }));
    // Lost with its connection: the slow look of the others finds it.
    const sent = this.#server.sql.one(TELL, CHANNEL, payloads).then(
      () => {},
      () => {},
    );
    this.#told = Promise.all([this.#told, sent]).then(() => {});
  }

  // ── hearing of others ──

  async #hear(): Promise<void> {
    const client = await this.#server.connect();
    // Closed meanwhile: nobody would end this connection, and it would keep the process.
    if (this.#isClosed) return client.end();
    client.on('notification', ({ payload = '' }) => this.#heard(payload));
    client.once('end', () => this.#lost(client));
    this.#client = client;
    await client.query(`LISTEN ${CHANNEL}`);
  }

  #heard(payload: string): void {
    const { by, moved } = noticeIn(payload);
    if (by !== this.#self) this.#call(moved);
  }

  #lost(client: Client): void {
    if (this.#client === client) this.#client = null;
    if (this.#isClosed || this.#retry !== null) return;
    this.#retry = setTimeout(() => {
      this.#retry = null;
      this.#hear().then(
        () => this.#call(null),
        () => this.#lost(client),
      );
    }, RETRY_MS).unref();
  }

  async #look(): Promise<void> {
    if (this.#listeners.size === 0) return;
    void this.#isHearing();
    const { last = '' } = (await this.#server.sql.one<{ last: string }>(LAST_TRANSACTION)) ?? {};
    const isNew = last !== this.#last;
    this.#last = last;
    if (isNew) this.#call(null);
  }

  /** A connection that was cut would be silent for ever: nobody sends anything on it. */
  async #isHearing(): Promise<void> {
    const client = this.#client;
    if (client === null || this.#isAsked) return;
    this.#isAsked = true;
    await answered(client, client.query('SELECT 1'), HEARING_MS).catch(() => {});
    this.#isAsked = false;
  }

  #call(moved: readonly string[] | null, own?: ReadonlySet<string>): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(moved, own);
      } catch (error) {
        // A bug of the listener; it must not undo what was committed.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** Whoever may use the database can send anything: then it may be about all of them. */
function noticeIn(payload: string): { readonly by: string | null; readonly moved: string[] | null } {
  try {
    const { by, moved } = JSON.parse(payload);
    const isList = Array.isArray(moved) && moved.every((id) => typeof id === 'string');
    return { by: String(by), moved: isList ? moved : null };
  } catch {
    return { by: null, moved: null };
  }
}
