import type { Failure, Feed, LiveFrame, LiveState, Live as LiveStream } from 'throughline/client';

/*
 * One stream for all tabs of a browser. The tab that holds a lock (Web Locks) is the leader: it has the stream, follows all that any tab
 * wants, and passes every frame on (BroadcastChannel). The others wait for the lock.
 *
 *   waits ─▶ leads ─▶ resigns: its tab is closed or frozen, its stream has ended, or another tab has stolen the lock ─▶ waits
 *
 * A visible tab pings the leader. If there is no answer, it steals the lock: a tab that hangs, or was frozen unnoticed, would hold it
 * for ever. Then every tab tells the new leader what it wants, and from where. Frames may then come twice, and readers drop those that
 * they have (`cursor.ts`).
 *
 * Without locks (the page is neither from HTTPS nor from localhost), every tab is its own leader.
 */

/** What a tab follows. */
interface Want {
  readonly conversation: string;
  readonly after: number;
  readonly log: string;
}

export type Message =
  /** Without any wants, it asks who the leader is. */
  | { readonly type: 'want'; readonly tab: string; readonly wants: readonly Want[]; readonly board: boolean }
  | { readonly type: 'ping' | 'wake' }
  | { readonly type: 'leader'; readonly leader: string; readonly state: HubState }
  /** The leader has passed on all events of this conversation up to this one. */
  | { readonly type: 'at'; readonly conversation: string; readonly seq: number; readonly logId: string }
  | { readonly type: 'frame'; readonly frame: LiveFrame }
  | { readonly type: 'ended'; readonly conversation: string; readonly failure: Failure };

export interface HubState extends LiveState {
  /** How many events were missed while the last connection was lost. They have arrived since, or will arrive soon. */
  readonly missed: number;
}

/** The dependencies of a hub; tests replace them. */
export interface HubParts {
  /** Null: there are no locks, so every tab is its own leader. */
  readonly tabs: {
    readonly locks: Pick<LockManager, 'request'>;
    readonly channel: Pick<BroadcastChannel, 'postMessage' | 'close' | 'onmessage'>;
  } | null;
  /** Names the locks. It contains the owner: another owner has another stream. */
  readonly name: string;
  readonly open: (feeds: readonly Feed[]) => LiveStream;
  /** The current end of the board: only later events are followed. */
  readonly board: () => Promise<{ after: number; log: string }>;
  readonly isVisible: () => boolean;
  readonly pingMs?: number;
  readonly silentMs?: number;
  readonly restMs?: number;
}

export interface HubListener {
  onMessage(message: Message): void;
  /** What this tab wants. */
  wants(): { readonly wants: readonly Want[]; readonly board: boolean };
}

const HINTS: Feed = { feed: 'hints', of: 'hints' };
const BOARD = 'board';
const CONVERSATION = 'c:';

export class Hub {
  readonly #parts: HubParts;
  readonly #listener: HubListener;
  readonly #tab = crypto.randomUUID();
  readonly #closed = new AbortController();
  readonly #timer: ReturnType<typeof setInterval> | undefined;
  #state: HubState = { state: 'connecting', since: Date.now(), failure: null, missed: 0 };
  #leading: Leading | null = null;
  #leader: string | null = null;
  /** When the last message of the leader arrived. */
  #heardAt = Date.now();
  #endRest = () => {};
  /** The next request steals the lock. */
  #steals = false;
  #line = new AbortController();
  /** This tab holds its own lock, by which the leader notices its end. Before that it tells no wants. */
  #isKnown = false;

  constructor(parts: HubParts, listener: HubListener) {
    this.#parts = parts;
    this.#listener = listener;
    const { tabs, pingMs = 2_000 } = parts;
    if (tabs === null) this.#isKnown = true;
    else {
      tabs.channel.onmessage = ({ data }) => this.#receive(data);
      this.#timer = setInterval(() => this.#ping(), pingMs);
      void this.#holdTabLock(tabs.locks);
    }
    void this.#campaign();
  }

  get state(): HubState {
    return this.#state;
  }

  get isLeader(): boolean {
    return this.#leading !== null;
  }

  /** To be called whenever the wants change. */
  tellWants(): void {
    if (this.#isKnown) this.#post({ type: 'want', tab: this.#tab, ...this.#listener.wants() });
  }

  /** To be called when the tab becomes visible, or the network is back: checks the stream at once. */
  wake(): void {
    this.#endRest();
    this.#post({ type: 'wake' });
    this.#ping();
  }

  /** To be called before this tab is frozen: another one becomes the leader. */
  resign(): void {
    this.#leading?.stop();
  }

  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    clearInterval(this.#timer);
    this.#endRest();
    this.#leading?.stop();
    this.#parts.tabs?.channel.close();
  }

  /** Holds a lock until this tab is closed. The leader requests it too, so it notices when the tab is gone. */
  async #holdTabLock(locks: Pick<LockManager, 'request'>): Promise<void> {
    await locks.request(lockOfTab(this.#parts.name, this.#tab), () => {
      this.#isKnown = true;
      this.tellWants();
      return new Promise<void>((resolve) => this.#closed.signal.addEventListener('abort', () => resolve()));
    });
  }

  /** To all tabs, this one included. */
  #post(message: Message): void {
    if (this.#closed.signal.aborted) return;
    this.#parts.tabs?.channel.postMessage(message);
    this.#receive(message);
  }

  #receive(message: Message): void {
    if (this.#closed.signal.aborted) return;
    if (message.type === 'want') this.#leading?.want(message.tab, message);
    else if (message.type === 'ping') this.#leading?.announce();
    else if (message.type === 'wake') this.#leading?.wake();
    else {
      this.#heardAt = Date.now();
      if (message.type === 'leader') this.#heard(message);
      this.#listener.onMessage(message);
    }
  }

  #heard({ leader, state }: Extract<Message, { type: 'leader' }>): void {
    const isNew = this.#leader !== leader;
    this.#leader = leader;
    this.#state = state;
    // A new leader does not know the wants of this tab.
    if (isNew) this.tellWants();
  }

  /** Only visible tabs ping: the timers of hidden ones are slow. */
  #ping(): void {
    const { tabs, isVisible, silentMs = 4_000 } = this.#parts;
    if (tabs === null || this.isLeader || !isVisible()) {
      this.#heardAt = Date.now();
      return;
    }
    if (Date.now() - this.#heardAt > silentMs) {
      this.#heardAt = Date.now();
      this.#steals = true;
      this.#line.abort();
      this.#endRest();
    } else this.#post({ type: 'ping' });
  }

  /** Requests the lock again and again, until this tab is closed. */
  async #campaign(): Promise<void> {
    const { tabs, name, restMs = 5_000 } = this.#parts;
    const { signal } = this.#closed;
    while (!signal.aborted) {
      this.#line = new AbortController();
      const inTurn = { signal: AbortSignal.any([this.#line.signal, signal]) };
      const options = this.#steals ? { steal: true } : inTurn;
      this.#steals = false;
      try {
        if (tabs === null) await this.#lead();
        else await tabs.locks.request(`${name} leader`, options, () => this.#lead());
      } catch {
        // Another tab has stolen the lock, this one is about to steal it, or this one is closed.
        this.#leading?.stop();
      }
      if (!this.#steals) await this.#rest(restMs);
    }
  }

  /** A tab that has just resigned waits before it leads again, unless `wake` is called. */
  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endRest = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#closed.signal.aborted) this.#endRest();
    });
  }

  /** Resolves when this tab is no longer the leader. */
  async #lead(): Promise<void> {
    if (this.#closed.signal.aborted) return;
    const leading = new Leading(this.#parts, (message) => this.#post(message));
    this.#leading = leading;
    try {
      leading.announce();
      await leading.read();
    } finally {
      leading.stop();
      if (this.#leading === leading) this.#leading = null;
    }
  }
}

const lockOfTab = (name: string, tab: string) => `${name} tab ${tab}`;

/** The work of the leader: one stream with all that any tab wants. */
class Leading {
  readonly #parts: HubParts;
  readonly #post: (message: Message) => void;
  readonly #id = crypto.randomUUID();
  readonly #stream: LiveStream;
  readonly #stopped = new AbortController();
  readonly #wants = new Map<string, { readonly wants: readonly Want[]; readonly board: boolean }>();
  /** The last event of each conversation that was passed on. */
  readonly #at = new Map<string, { seq: number; readonly logId: string; hasBegun: boolean }>();
  #hasBoard = false;
  #missed = 0;

  constructor(parts: HubParts, post: (message: Message) => void) {
    this.#parts = parts;
    this.#post = post;
    this.#stream = parts.open([HINTS]);
    this.#stream.onState(({ state }) => {
      if (state === 'waiting') this.#missed = 0;
      this.announce();
    });
  }

  announce(): void {
    const state = { ...this.#stream.state, missed: this.#missed };
    if (!this.#stopped.signal.aborted) this.#post({ type: 'leader', leader: this.#id, state });
  }

  wake(): void {
    this.#stream.wake();
  }

  stop(): void {
    this.#stopped.abort();
    this.#stream.close();
  }

  /** Resolves when it is stopped, or the stream has ended; the state has the reason. */
  async read(): Promise<void> {
    try {
      for await (const frame of this.#stream) this.#pass(frame);
    } catch {
      // The announced state has the reason.
    }
  }

  want(tab: string, wanted: { readonly wants: readonly Want[]; readonly board: boolean }): void {
    if (this.#stopped.signal.aborted) return;
    if (!this.#wants.has(tab)) this.#watch(tab);
    this.#wants.set(tab, wanted);
    for (const want of wanted.wants) this.#follow(want);
    this.#unfollowUnwanted();
    if (wanted.board && !this.#hasBoard) void this.#followBoard();
    // A tab without wants asks who the leader is.
    if (wanted.wants.length === 0 && !wanted.board) this.announce();
  }

  #follow({ conversation, after, log }: Want): void {
    const at = this.#at.get(conversation);
    if (at !== undefined) {
      this.#post({ type: 'at', conversation, seq: at.seq, logId: at.logId });
      return;
    }
    try {
      this.#stream.follow({ feed: CONVERSATION + conversation, of: 'conversation', conversation, after, log });
      this.#at.set(conversation, { seq: after, logId: log, hasBegun: false });
    } catch (error) {
      const { code, message } = error as Failure;
      this.#post({ type: 'ended', conversation, failure: { code, message } });
    }
  }

  async #followBoard(): Promise<void> {
    this.#hasBoard = true;
    try {
      const place = await this.#parts.board();
      this.#stream.follow({ feed: BOARD, of: 'board', ...place });
    } catch {
      this.#hasBoard = false; // the next want tries again
    }
  }

  /** Stops following what no tab wants any more. */
  #unfollowUnwanted(): void {
    const all = [...this.#wants.values()];
    const wanted = new Set(all.flatMap(({ wants }) => wants.map(({ conversation }) => conversation)));
    for (const conversation of this.#at.keys()) {
      if (wanted.has(conversation)) continue;
      this.#at.delete(conversation);
      this.#stream.unfollow(CONVERSATION + conversation);
    }
    if (!this.#hasBoard || all.some(({ board }) => board)) return;
    this.#hasBoard = false;
    this.#stream.unfollow(BOARD);
  }

  /** The lock of a tab becomes free when the tab is gone, also after a crash. */
  #watch(tab: string): void {
    const { tabs, name } = this.#parts;
    if (tabs === null) return;
    tabs.locks
      .request(lockOfTab(name, tab), { signal: this.#stopped.signal }, () => {
        this.#wants.delete(tab);
        this.#unfollowUnwanted();
      })
      .catch(() => {}); // this tab is no longer the leader
  }

  #pass(frame: LiveFrame): void {
    if (this.#stopped.signal.aborted) return;
    if (!frame.feed.startsWith(CONVERSATION)) {
      this.#post({ type: 'frame', frame });
      return;
    }
    const conversation = frame.feed.slice(CONVERSATION.length);
    const at = this.#at.get(conversation);
    if (at === undefined) return;
    if (frame.kind === 'began') {
      // The feed began again after a reconnect.
      if (at.hasBegun && frame.seq > at.seq) {
        this.#missed += frame.seq - at.seq;
        this.announce();
      }
      at.hasBegun = true;
    } else if (frame.kind === 'event') {
      at.seq = frame.event.seq;
      this.#post({ type: 'frame', frame: { ...frame, feed: conversation } });
    } else if (frame.kind === 'ended') {
      this.#at.delete(conversation);
      this.#post({ type: 'ended', conversation, failure: frame.failure });
    }
  }
}
