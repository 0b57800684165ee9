import type { Failure, Feed, LiveFrame, LiveState, Live as LiveStream } from 'throughline/client';

/*
 * One stream for all tabs of a browser. The tab that holds a lock (Web Locks) leads: it has the stream, follows all that any tab wants,
 * and passes every frame on (BroadcastChannel). All others are in line for the lock.
 *
 *   in line ─▶ leads ─▶ resigns: its tab closes or is frozen, its stream cannot go on, or another tab took the lock from it ─▶ in line
 *
 * A visible tab asks the leader for a sign of life. Without one it takes the lock: a tab that hangs or was frozen unnoticed would keep it
 * for ever. Whoever leads from then on is told by every tab what it wants, and from where. Frames may come twice then, and readers drop
 * what they have (`cursor.ts`).
 *
 * Where there are no locks (a page that is not from https or this machine), every tab leads itself.
 */

/** What a tab follows. */
interface Want {
  readonly conversation: string;
  readonly after: number;
  readonly log: string;
}

export type Message =
  /** Also asks who leads. */
  | { readonly type: 'want'; readonly tab: string; readonly wants: readonly Want[]; readonly board: boolean }
  | { readonly type: 'ping' | 'wake' }
  | { readonly type: 'leader'; readonly leader: string; readonly state: HubState }
  /** The leader has passed on all events of this conversation up to this one. */
  | { readonly type: 'at'; readonly conversation: string; readonly seq: number; readonly logId: string }
  | { readonly type: 'frame'; readonly frame: LiveFrame }
  | { readonly type: 'ended'; readonly conversation: string; readonly failure: Failure };

export interface HubState extends LiveState {
  /** How many events were missed while the last connection was lost, and have come, or are on their way. */
  readonly missed: number;
}

/** What it is made of; in tests, something else. */
export interface HubParts {
  /** Null: none, so every tab leads itself. */
  readonly tabs: {
    readonly locks: Pick<LockManager, 'request'>;
    readonly channel: Pick<BroadcastChannel, 'postMessage' | 'close' | 'onmessage'>;
  } | null;
  /** The owner: another one has another stream. */
  readonly name: string;
  readonly open: (feeds: readonly Feed[]) => LiveStream;
  /** The place of the board: only what happens from now on is followed. */
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
  /** When the leader was last heard of. */
  #heardAt = Date.now();
  #endRest = () => {};
  /** The lock is taken, in its turn or not. */
  #isTaking = false;
  #line = new AbortController();
  /** This tab has its own lock, so that its end is noticed. */
  #isKnown = false;

  constructor(parts: HubParts, listener: HubListener) {
    this.#parts = parts;
    this.#listener = listener;
    const { tabs, pingMs = 2_000 } = parts;
    if (tabs === null) this.#isKnown = true;
    else {
      tabs.channel.onmessage = ({ data }) => this.#receive(data);
      this.#timer = setInterval(() => this.#ping(), pingMs);
      void this.#live(tabs.locks);
    }
    void this.#campaign();
  }

  get state(): HubState {
    return this.#state;
  }

  get isLeader(): boolean {
    return this.#leading !== null;
  }

  /** To be called whenever they change. */
  tellWants(): void {
    if (this.#isKnown) this.#post({ type: 'want', tab: this.#tab, ...this.#listener.wants() });
  }

  /** Somebody looks, or the network is back: looks at once whether the stream still lives. */
  wake(): void {
    this.#endRest();
    this.#post({ type: 'wake' });
    this.#ping();
  }

  /** This tab is about to be frozen: another one leads. */
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

  /** Holds a lock for as long as this tab lives: the leader notices its end by getting it. */
  async #live(locks: Pick<LockManager, 'request'>): Promise<void> {
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
    // A new one knows nothing of what this tab wants.
    if (isNew) this.tellWants();
  }

  /** Only visible tabs: nobody waits for the others, and their timers are slow. */
  #ping(): void {
    const { tabs, isVisible, silentMs = 4_000 } = this.#parts;
    if (tabs === null || this.isLeader || !isVisible()) {
      this.#heardAt = Date.now();
      return;
    }
    if (Date.now() - this.#heardAt > silentMs) {
      this.#heardAt = Date.now();
      this.#isTaking = true;
      this.#line.abort();
      this.#endRest();
    } else this.#post({ type: 'ping' });
  }

  /** In line for the lock, for as long as this tab lives. */
  async #campaign(): Promise<void> {
    const { tabs, name, restMs = 5_000 } = this.#parts;
    const { signal } = this.#closed;
    while (!signal.aborted) {
      this.#line = new AbortController();
      const inTurn = { signal: AbortSignal.any([this.#line.signal, signal]) };
      const options = this.#isTaking ? { steal: true } : inTurn;
      this.#isTaking = false;
      try {
        if (tabs === null) await this.#lead();
        else await tabs.locks.request(`${name} leader`, options, () => this.#lead());
      } catch {
        // Another tab took the lock, this one is about to take it, or it is closed.
        this.#leading?.stop();
      }
      if (!this.#isTaking) await this.#rest(restMs);
    }
  }

  /** Until somebody looks, at most so long: a tab that has just resigned does not lead again at once. */
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

  /** Resolves when it leads no longer. */
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

/** What the leader does: one stream with all that any tab wants. */
class Leading {
  readonly #parts: HubParts;
  readonly #post: (message: Message) => void;
  readonly #id = crypto.randomUUID();
  readonly #stream: LiveStream;
  readonly #stopped = new AbortController();
  readonly #wants = new Map<string, { readonly wants: readonly Want[]; readonly board: boolean }>();
  /** How far each conversation was passed on. */
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

  /** Until it is stopped, or the stream cannot go on; then its state says why. */
  async read(): Promise<void> {
    try {
      for await (const frame of this.#stream) this.#pass(frame);
    } catch {
      // The state that was announced has the reason.
    }
  }

  want(tab: string, wanted: { readonly wants: readonly Want[]; readonly board: boolean }): void {
    if (this.#stopped.signal.aborted) return;
    if (!this.#wants.has(tab)) this.#watch(tab);
    this.#wants.set(tab, wanted);
    for (const want of wanted.wants) this.#follow(want);
    this.#unfollowUnwanted();
    if (wanted.board && !this.#hasBoard) void this.#followBoard();
    // Whoever asks who leads is a new tab, or one that has heard of another leader.
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
      this.#hasBoard = false; // the next one who asks tries again
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

  /** The lock of a tab is free when the tab is gone, however it went. */
  #watch(tab: string): void {
    const { tabs, name } = this.#parts;
    if (tabs === null) return;
    tabs.locks
      .request(lockOfTab(name, tab), { signal: this.#stopped.signal }, () => {
        this.#wants.delete(tab);
        this.#unfollowUnwanted();
      })
      .catch(() => {}); // this one leads no longer
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
      // Again, after a reconnect.
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
