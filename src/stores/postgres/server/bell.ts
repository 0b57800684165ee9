import { randomUUID } from 'node:crypto';
import { type Listener, Listeners, type News } from '../../shared/news.ts';
import { answered, type Client, type Server } from './connect.ts';

/*
 * The bell notifies listeners that conversations or tasks have moved: "read again". It is a hint, and nothing depends on it.
 *
 * Listeners of this process are notified when a transaction is committed. Other processes get a NOTIFY after the commit, with ids alone:
 * inside the transaction it would take a lock that all commits wait for. A burst of commits is one NOTIFY.
 *
 *   receiving   connecting ──LISTEN on a connection of its own──▶ on ──it ends──▶ waiting ──1 s──▶ connecting
 *               (then "anything may have moved"); close ──▶ closed, from any of them
 *
 *   sending     idle ──commit──▶ due ──10 ms──▶ NOTIFY ──▶ idle
 *
 * A process that is killed between its commit and its NOTIFY notifies nobody. So, while anybody listens, a slow poll looks whether there were any
 * transactions.
 */

type Receiving =
  | { readonly state: 'connecting' }
  /** `isChecked`: a query is under way that shows whether the connection still answers. */
  | { readonly state: 'on'; readonly client: Client; isChecked: boolean }
  | { readonly state: 'waiting'; readonly timer: NodeJS.Timeout }
  | { readonly state: 'closed' };

type Sending =
  | { readonly state: 'idle' }
  | { readonly state: 'due'; readonly ids: Set<string>; readonly timer: NodeJS.Timeout };

const CHANNEL = 'throughline';
const PAUSE_MS = 10;
const RETRY_MS = 1_000;
/** How long that query may take. */
const CHECK_MS = 5_000;
/** A payload has at most 8,000 bytes; an id takes 39. */
const MOST_IDS = 150;
const NOTIFY = 'SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p';
const LAST_TRANSACTION = 'SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS last';

export class Bell {
  readonly #server: Server;
  readonly #self = randomUUID();
  readonly #listeners = new Listeners();
  #receiving: Receiving = { state: 'connecting' };
  #sending: Sending = { state: 'idle' };
  /** Resolves when all notifications were sent. */
  #sent: Promise<void> = Promise.resolve();
  #poll: NodeJS.Timeout | null = null;
  /** The last transaction that the poll has seen. */
  #last = '';

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Receives from here on. */
  static async open(server: Server, pollMs: number): Promise<Bell> {
    const bell = new Bell(server);
    await bell.#connect().catch(async (error: unknown) => {
      await bell.close();
      throw error;
    });
    bell.#poll = setInterval(() => void bell.#look().catch(() => {}), pollMs).unref();
    return bell;
  }

  listen(listener: Listener): () => void {
    return this.#listeners.add(listener);
  }

  /** After a commit of this process. */
  notify(news: News): void {
    const { ids } = news;
    if (ids.length === 0) return;
    if (this.#sending.state === 'idle') {
      this.#sending = { state: 'due', ids: new Set(), timer: setTimeout(() => this.#send(), PAUSE_MS) };
    }
    for (const id of ids) this.#sending.ids.add(id);
    this.#listeners.call(ids, news.own);
  }

  async close(): Promise<void> {
    const receiving = this.#receiving;
    this.#receiving = { state: 'closed' };
    this.#listeners.clear();
    if (this.#poll !== null) clearInterval(this.#poll);
    if (receiving.state === 'waiting') clearTimeout(receiving.timer);
    this.#send();
    await this.#sent;
    if (receiving.state === 'on') await receiving.client.end().catch(() => {});
  }

  // ── sending ──

  #send(): void {
    if (this.#sending.state === 'idle') return;
    clearTimeout(this.#sending.timer);
    const ids = [...this.#sending.ids];
    this.#sending = { state: 'idle' };
    const parts = Array.from({ length: Math.ceil(ids.length / MOST_IDS) }, (_, i) =>
      ids.slice(i * MOST_IDS, (i + 1) * MOST_IDS),
    );
    const payloads = parts.map((moved) => JSON.stringify({ by: this.#self, moved }));
    // If it is lost with its connection, the slow poll of the others finds the change.
    const sent = this.#server.sql.one(NOTIFY, CHANNEL, payloads).then(
      () => {},
      () => {},
    );
    this.#sent = Promise.all([this.#sent, sent]).then(() => {});
  }

  // ── receiving ──

  async #connect(): Promise<void> {
    const client = await this.#server.connect();
    // Closed meanwhile: nobody else would end this connection, and it would keep the process alive.
    if (this.#receiving.state === 'closed') return client.end();
    client.on('notification', ({ payload = '' }) => this.#received(payload));
    client.once('end', () => {
      if (this.#receiving.state === 'on' && this.#receiving.client === client) this.#lost();
    });
    this.#receiving = { state: 'on', client, isChecked: false };
    await client.query(`LISTEN ${CHANNEL}`);
  }

  #received(payload: string): void {
    const { by, moved } = noticeIn(payload);
    if (by !== this.#self) this.#listeners.call(moved);
  }

  #lost(): void {
    if (this.#receiving.state === 'waiting' || this.#receiving.state === 'closed') return;
    // The server may have refused LISTEN, and the connection is still open.
    if (this.#receiving.state === 'on') void this.#receiving.client.end().catch(() => {});
    const timer = setTimeout(() => {
      this.#receiving = { state: 'connecting' };
      this.#connect().then(
        () => this.#listeners.call(null),
        () => this.#lost(),
      );
    }, RETRY_MS).unref();
    this.#receiving = { state: 'waiting', timer };
  }

  async #look(): Promise<void> {
    if (this.#listeners.size === 0) return;
    void this.#checkConnection();
    const { last = '' } = (await this.#server.sql.one<{ last: string }>(LAST_TRANSACTION)) ?? {};
    const isNew = last !== this.#last;
    this.#last = last;
    if (isNew) this.#listeners.call(null);
  }

  /** Nothing is sent on this connection. If it were cut, we would never notice without this query. */
  async #checkConnection(): Promise<void> {
    const receiving = this.#receiving;
    if (receiving.state !== 'on' || receiving.isChecked) return;
    receiving.isChecked = true;
    await answered(receiving.client, receiving.client.query('SELECT 1'), CHECK_MS).catch(() => {});
    receiving.isChecked = false;
  }
}

/** Every user of the database can send on the channel. A payload that is not ours means that anything may have moved. */
function noticeIn(payload: string): { readonly by: string | null; readonly moved: string[] | null } {
  try {
    const { by, moved } = JSON.parse(payload);
    const isList = Array.isArray(moved) && moved.every((id) => typeof id === 'string');
    return { by: String(by), moved: isList ? moved : null };
  } catch {
    return { by: null, moved: null };
  }
}
