import type { Conversation, ConversationEvent, Engine, Restore, ThroughlineClient, Turn } from 'throughline/client';
import { createStore, type StoreApi } from 'zustand/vanilla';
import type { Live } from '../../live/live.ts';
import { Newest } from '../newest.ts';
import { afterUpdate } from './announced.ts';
import { Decisions } from './decisions.ts';
import { afterEvent, isOpen, itemOf, LiveParts, type TurnItem, withReceipt } from './model.ts';
import { endedIn, PAGE, pageOf, readEnd, readEndingBefore, readEvents, readOutline, readPage } from './reads.ts';
import { afterEvents, type ConversationState, type Look, NOTHING } from './state.ts';

/** Reads a conversation and keeps it current until it is closed. */
export class ConversationStore {
  readonly id: string;
  readonly state: StoreApi<ConversationState> = createStore(() => NOTHING);
  readonly decisions: Decisions;
  readonly #engine: Engine;
  readonly #live: Live;
  readonly #parts = new Map<string, LiveParts>();
  /** Events of turns that are not loaded yet, by turn id. */
  readonly #early = new Map<string, ConversationEvent[]>();
  readonly #loading = new Map<number, Promise<void>>();
  readonly #newest = new Newest();
  readonly #endingsRead = new Set<number>();
  #waiting: ConversationEvent[] = [];
  /** The waiting events will be applied in the next frame. */
  #isScheduled = false;
  #stop: () => void = () => {};
  #closed = false;
  #askedAnnounced = false;
  /** What could not be read because the server was away. It is read when the connection is back. */
  #unread: Look | null = null;

  constructor(tl: ThroughlineClient, live: Live, id: string) {
    this.id = id;
    this.#engine = tl.engine;
    this.decisions = new Decisions(tl.engine, id);
    this.#live = live;
  }

  /**
   * Reads the end first, because that is what is shown. `known`: the conversation as it was read earlier. Events are followed from a
   * point before the end was read, so that none is missing: from `known`, so that all requests run at once; without it, from the
   * conversation that is read first.
   */
  async open(known: Conversation | null = null): Promise<void> {
    try {
      const from = known ?? (await this.#engine.conversation(this.id));
      this.state.setState({ conversation: from });
      const [conversation] = await Promise.all([
        known === null ? from : this.#engine.conversation(this.id),
        this.#readEnd(),
        this.#readSessions(),
        this.#readPermissions(),
      ]);
      // The log was replaced after `known` was read.
      if (conversation.logId !== from.logId) return this.open();
      if (this.#closed) return;
      this.state.setState({ conversation, lastSeq: from.lastSeq, phase: 'ready' });
      this.#follow(from);
      // The line, the outline and the usage need it. Nothing that is read waits for it.
      void this.readOutline();
    } catch (error) {
      if (!this.#closed) this.state.setState({ phase: 'failed', error });
    }
  }

  /** The last page, and more than a screen of the page before it. */
  async #readEnd(): Promise<void> {
    const { items, restores } = await readEnd(this.#engine, this.id);
    await this.#putRead(items, restores);
    const [first, last] = [items.at(0)?.turn.n ?? 1, items.at(-1)?.turn.n ?? 0];
    const page = pageOf(last);
    if (last > 0 && first <= Math.max(1, page * PAGE)) this.#loading.set(page, Promise.resolve());
    // If the turns are large, the server has returned fewer of them.
    else if (last > 0) await this.load(last - PAGE / 4, last);
  }

  close(): void {
    this.#closed = true;
    this.#stop();
  }

  /** Loads the pages with these turns, if they are not loaded yet. */
  async load(from: number, to: number): Promise<void> {
    const pages: Promise<void>[] = [];
    for (let page = pageOf(from); page <= pageOf(to); page += 1) pages.push(this.#loadPage(page));
    await Promise.all(pages);
  }

  #loadPage(page: number): Promise<void> {
    let loading = this.#loading.get(page);
    if (loading === undefined) {
      loading = this.#readPage(page).catch((error) => {
        // The next call tries again.
        this.#loading.delete(page);
        throw error;
      });
      this.#loading.set(page, loading);
    }
    return loading;
  }

  async #readPage(page: number): Promise<void> {
    const { items, restores } = await readPage(this.#engine, this.id, page, this.state.getState().last);
    await this.#putRead(items, restores);
  }

  async #putRead(items: readonly TurnItem[], restores: readonly Restore[]): Promise<void> {
    this.state.setState(({ receipts }) => ({ receipts: restores.reduce(withReceipt, receipts) }));
    this.#put(await Promise.all(items.map((item) => (hasBegun(item) ? this.#withEvents(item) : item))));
  }

  /** Adds what a running turn has said so far, and its notices. */
  async #withEvents(item: TurnItem): Promise<TurnItem> {
    const events = await readEvents(this.#engine, this.id, item.turn.n);
    const live = new LiveParts();
    for (const event of events) live.add(event);
    this.#parts.set(item.turn.id, live);
    this.#announce(events);
    return { ...events.reduce(afterEvent, item), parts: live.parts };
  }

  /** Reads why the session before this turn had ended. */
  async readEnding(n: number): Promise<void> {
    const { endings, conversation } = this.state.getState();
    if (this.#endingsRead.has(n) || endings.has(n) || conversation === null) return;
    this.#endingsRead.add(n);
    const ending = await readEndingBefore(this.#engine, this.id, n, conversation.lastSeq);
    if (ending === null || this.#closed) return;
    this.state.setState((now) => ({ endings: new Map(now.endings).set(n, ending) }));
  }

  /** Reads once what the agent announced before the page was opened. If that fails, there is only less to choose from. */
  readAnnounced(): void {
    if (this.#askedAnnounced) return;
    this.#askedAnnounced = true;
    this.#engine.events(this.id, { limit: 500 }).then(
      (events) => this.#announce(events),
      () => {
        this.#askedAnnounced = false;
      },
    );
  }

  /** Ends the processes of its live sessions. Returns how many there were. */
  async kill(): Promise<number> {
    const ended = await this.#engine.kill(this.id);
    this.state.setState({ isKilled: true });
    return ended.length;
  }

  /** To be called after a prompt was sent from this page: the timeline scrolls to its answer. */
  hasSent(): void {
    this.state.setState(({ sends }) => ({ sends: sends + 1 }));
  }

  /** Reads all queued turns, and those that have left the queue. */
  async readQueue(): Promise<void> {
    const queued = await this.#engine.queue(this.id, { limit: 200 });
    const { turns } = this.state.getState();
    const ids = new Set(queued.map(({ id }) => id));
    const begun = [...turns.values()].filter(({ turn }) => turn.state === 'queued' && !ids.has(turn.id));
    this.#put(queued.map((turn) => ({ ...(turns.get(turn.n) ?? itemOf(turn)), turn })));
    await Promise.all(begun.map(({ turn }) => this.#readTurn(turn.id)));
  }

  #announce(events: readonly ConversationEvent[]): void {
    const updates = events.flatMap((event) => (event.kind === 'turn.update' ? [event.payload.update] : []));
    const announced = updates.reduce(afterUpdate, this.state.getState().announced);
    if (!this.#closed) this.state.setState({ announced });
  }

  #follow({ lastSeq: after, logId: log }: Conversation): void {
    const stopLooking = this.#live.onState(({ state }) => {
      if (state !== 'open' || this.#unread === null) return;
      const { turns } = this.#unread;
      this.#unread = null;
      this.#look({ turns, outline: true, sessions: true, permissions: true, conversation: true });
    });
    const stopFollowing = this.#live.follow(
      this.id,
      { after, log },
      {
        onEvent: (event) => {
          this.#waiting.push(event);
          if (this.#isScheduled) return;
          this.#isScheduled = true;
          nextFrame(() => this.#apply());
        },
        onEnd: (error) => this.state.setState({ phase: 'failed', error }),
      },
    );
    this.#stop = () => {
      stopLooking();
      stopFollowing();
    };
  }

  /** Applies the waiting events, once in a frame. */
  #apply(): void {
    this.#isScheduled = false;
    if (this.#closed) return;
    const events = this.#waiting;
    this.#waiting = [];
    const { change, look, early } = afterEvents(this.state.getState(), events, (turnId) => this.#partsOf(turnId));
    for (const event of early) this.#early.set(event.turnId ?? '', [...this.#earlyOf(event.turnId), event]);
    this.state.setState(change);
    this.decisions.onEvents(events);
    this.#look(look);
  }

  #newItem(turn: Turn): TurnItem {
    const item = itemOf(turn, this.#parts.get(turn.id)?.parts);
    return isOpen(item) ? this.#earlyOf(turn.id).reduce(afterEvent, item) : item;
  }

  #earlyOf(turnId: string | null): readonly ConversationEvent[] {
    return this.#early.get(turnId ?? '') ?? [];
  }

  #partsOf(turnId: string): LiveParts {
    const parts = this.#parts.get(turnId) ?? new LiveParts();
    this.#parts.set(turnId, parts);
    return parts;
  }

  /** Reads what events only refer to. */
  #look(what: Look): void {
    const looks = [...what.turns].map((id) => this.#readTurn(id));
    if (what.outline) looks.push(this.readOutline());
    if (what.sessions) looks.push(this.#readSessions());
    if (what.permissions) looks.push(this.#readPermissions());
    if (what.conversation) looks.push(this.readConversation());
    Promise.all(looks).catch((error) => {
      if (this.#closed) return;
      this.#unread = { ...what, turns: new Set([...(this.#unread?.turns ?? []), ...what.turns]) };
      this.state.setState({ error });
    });
  }

  async #readTurn(id: string): Promise<void> {
    const turn = await this.#newest.of(id, this.#engine.turn(id));
    if (turn === null) return;
    const known = this.state.getState().turns.get(turn.n);
    // Some of its events may have arrived before the turn was loaded.
    const item = known === undefined ? this.#newItem(turn) : { ...known, turn };
    this.#early.delete(id);
    const [record] = isOpen(item) ? [] : await this.#engine.records(this.id, { after: turn.n - 1, limit: 1 });
    if (!isOpen(item)) this.#parts.delete(id);
    this.#put([record?.n === turn.n ? { ...item, parts: record.parts } : item]);
  }

  async #readSessions(): Promise<void> {
    const sessions = await this.#newest.of('sessions', this.#engine.sessions(this.id));
    if (sessions !== null) this.state.setState({ sessions });
  }

  async #readPermissions(): Promise<void> {
    const read = this.#engine.permissions({ conversation: this.id, open: true });
    const permissions = await this.#newest.of('permissions', read);
    if (permissions !== null) this.state.setState({ permissions });
  }

  /** Reads the turns without their texts, again from the first one that may have changed. */
  async readOutline(): Promise<void> {
    const known = endedIn(this.state.getState().outline ?? []);
    try {
      const rest = await this.#newest.of('outline', readOutline(this.#engine, this.id, known.at(-1)?.n ?? 0));
      if (rest !== null && !this.#closed) this.state.setState({ outline: [...known, ...rest], outlineError: null });
    } catch (error) {
      // The next turn that ends tries again.
      if (!this.#closed) this.state.setState({ outlineError: error });
    }
  }

  async readConversation(): Promise<void> {
    const conversation = await this.#newest.of('conversation', this.#engine.conversation(this.id));
    if (conversation !== null) this.state.setState({ conversation });
  }

  #put(items: readonly TurnItem[]): void {
    if (this.#closed) return;
    this.state.setState(({ turns, last }) => {
      const next = new Map(turns);
      for (const item of items) next.set(item.turn.n, item);
      return { turns: next, last: Math.max(last, ...items.map(({ turn }) => turn.n)) };
    });
  }
}

function hasBegun(item: TurnItem): boolean {
  return isOpen(item) && item.turn.state !== 'queued';
}

const HIDDEN_MS = 100;

/** In the next frame, or after a short wait: a hidden tab gets no frames, and its state must not fall behind. */
function nextFrame(work: () => void): void {
  const frame = requestAnimationFrame(() => {
    clearTimeout(timer);
    work();
  });
  const timer = setTimeout(() => {
    cancelAnimationFrame(frame);
    work();
  }, HIDDEN_MS);
}
