import type {
  Conversation,
  ConversationEvent,
  Engine,
  Permission,
  Session,
  ThroughlineClient,
} from 'throughline/client';
import { createStore, type StoreApi } from 'zustand/vanilla';
import type { Live } from '../../live/live.ts';
import { Newest } from '../newest.ts';
import { afterUpdate } from './announced.ts';
import {
  afterEvent,
  endingIn,
  isOpen,
  itemOf,
  LiveParts,
  NOTHING_SHARED,
  type Shared,
  sharedAfter,
  type TurnItem,
  withReceipt,
} from './model.ts';

/** One conversation as the page has it. Turns are loaded in pages, those near the end first; the rest when somebody looks there. */
export interface ConversationState extends Shared {
  readonly phase: 'loading' | 'ready' | 'failed';
  readonly error: unknown;
  readonly conversation: Conversation | null;
  /** The number of its last turn; 0: it has none. Turns are numbered from 1 without gaps. */
  readonly last: number;
  /** By number. One that is missing is not loaded. */
  readonly turns: ReadonlyMap<number, TurnItem>;
  readonly sessions: readonly Session[];
  /** The questions that wait for an answer, oldest first. */
  readonly permissions: readonly Permission[];
  /** Somebody has ended its session on this page, and no turn has begun since. */
  readonly isKilled: boolean;
}

const NOTHING: ConversationState = {
  phase: 'loading',
  error: null,
  conversation: null,
  last: 0,
  turns: new Map(),
  sessions: [],
  permissions: [],
  ...NOTHING_SHARED,
  isKilled: false,
};

/** So many turns are read at once. */
export const PAGE = 40;

/** So many events there are at most between two turns, as far as anybody looks. */
const EVENTS_BETWEEN = 40;

/** Reads a conversation and keeps it current until it is closed. */
export class ConversationStore {
  readonly id: string;
  readonly state: StoreApi<ConversationState> = createStore(() => NOTHING);
  readonly #engine: Engine;
  readonly #live: Live;
  readonly #parts = new Map<string, LiveParts>();
  readonly #loading = new Map<number, Promise<void>>();
  readonly #newest = new Newest();
  readonly #endingsRead = new Set<number>();
  #waiting: ConversationEvent[] = [];
  /** A frame was asked for, in which they are applied. */
  #isAsked = false;
  #stop: () => void = () => {};
  #closed = false;
  #askedAnnounced = false;
  /** What could not be read because the server was gone, to be read when it is back. */
  #owed: Look | null = null;

  constructor(tl: ThroughlineClient, live: Live, id: string) {
    this.id = id;
    this.#engine = tl.engine;
    this.#live = live;
  }

  /** Its end first: what somebody who opens it looks at. */
  async open(): Promise<void> {
    try {
      const engine = this.#engine;
      const [conversation, ending] = await Promise.all([
        engine.conversation(this.id),
        engine.outline(this.id, { before: 'end', limit: 1 }),
      ]);
      const last = ending.at(-1)?.n ?? 0;
      this.state.setState({ conversation, last });
      // The last page may have one turn only, and a screen has room for more.
      await Promise.all([this.load(last - PAGE / 4, last), this.#readSessions(), this.#readPermissions()]);
      if (this.#closed) return;
      this.state.setState({ phase: 'ready' });
      this.#follow(conversation);
    } catch (error) {
      if (!this.#closed) this.state.setState({ phase: 'failed', error });
    }
  }

  close(): void {
    this.#closed = true;
    this.#stop();
  }

  /** Loads the pages with these turns, if they are not here yet. */
  async load(from: number, to: number): Promise<void> {
    const pages: Promise<void>[] = [];
    for (let page = pageOf(from); page <= pageOf(to); page += 1) pages.push(this.#loadPage(page));
    await Promise.all(pages);
  }

  #loadPage(page: number): Promise<void> {
    let loading = this.#loading.get(page);
    if (loading === undefined) {
      loading = this.#readPage(page).catch((error) => {
        // The next one who looks there tries again.
        this.#loading.delete(page);
        throw error;
      });
      this.#loading.set(page, loading);
    }
    return loading;
  }

  async #readPage(page: number): Promise<void> {
    // With the last turn of the page before: a seam is about two turns.
    const range = { after: Math.max(page * PAGE - 1, 0), upTo: (page + 1) * PAGE };
    const engine = this.#engine;
    const [turns, records, restores] = await Promise.all([
      readRange(range, (part) => engine.turns(this.id, part)),
      readRange(range, (part) => engine.records(this.id, part)),
      readRange(range, (part) => engine.restores(this.id, part)),
    ]);
    this.state.setState(({ receipts }) => ({ receipts: restores.reduce(withReceipt, receipts) }));
    const parts = new Map(records.map((record) => [record.n, record.parts]));
    const items = turns.map((turn) => itemOf(turn, parts.get(turn.n)));
    this.#put(await Promise.all(items.map((item) => (hasBegun(item) ? this.#withEvents(item) : item))));
  }

  /** With what a running turn has said, and what it waits for, before we came. */
  async #withEvents(item: TurnItem): Promise<TurnItem> {
    const { turn } = item;
    const pages: ConversationEvent[][] = [];
    let before: number | 'end' = 'end';
    for (;;) {
      const page: ConversationEvent[] = await this.#engine.events(this.id, { turn: turn.n, before, limit: 500 });
      const [first] = page;
      if (first === undefined) break;
      pages.unshift(page);
      before = first.seq;
    }
    const live = new LiveParts();
    for (const event of pages.flat()) live.add(event);
    this.#parts.set(turn.id, live);
    this.#announce(pages.flat());
    return { ...pages.flat().reduce(afterEvent, item), parts: live.parts };
  }

  /** Why the session before this turn had ended: it is said between the end of the turn before and this one. */
  async readEnding(n: number): Promise<void> {
    const { endings, conversation } = this.state.getState();
    if (this.#endingsRead.has(n) || endings.has(n) || conversation === null) return;
    this.#endingsRead.add(n);
    const [end] = await this.#engine.events(this.id, { turn: n - 1, limit: 1 });
    if (end === undefined) return; // imported: it ended elsewhere
    const before = Math.min(end.seq + EVENTS_BETWEEN, conversation.lastSeq + 1);
    const around = await this.#engine.events(this.id, { before, limit: EVENTS_BETWEEN + 5 });
    const restored = around.findIndex(({ kind, seq }) => seq > end.seq && kind === 'restore.receipt');
    const ending = around
      .slice(0, restored === -1 ? undefined : restored)
      .findLast((event) => endingIn(event) !== null);
    if (ending === undefined || this.#closed) return;
    this.state.setState((now) => ({ endings: new Map(now.endings).set(n, endingIn(ending) ?? '') }));
  }

  /** What its agent said of itself before the page was opened, once. Without it there is less to choose from, and nothing is missing. */
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

  /** Ends the processes of its live sessions; how many there were. */
  async kill(): Promise<number> {
    const ended = await this.#engine.kill(this.id);
    this.state.setState({ isKilled: true });
    return ended.length;
  }

  /** Every turn that waits, and those that do not any more. */
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
      if (state !== 'open' || this.#owed === null) return;
      const { turns } = this.#owed;
      this.#owed = null;
      this.#look({ turns, sessions: true, permissions: true, conversation: true });
    });
    const stopFollowing = this.#live.follow(
      this.id,
      { after, log },
      {
        onEvent: (event) => {
          this.#waiting.push(event);
          if (this.#isAsked) return;
          this.#isAsked = true;
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

  /** Once a frame, however many have come. */
  #apply(): void {
    this.#isAsked = false;
    if (this.#closed) return;
    const events = this.#waiting;
    this.#waiting = [];
    const before = this.state.getState();
    const turns = new Map(before.turns);
    const byId = new Map([...turns.values()].filter(isOpen).map((item) => [item.turn.id, item.turn.n]));
    const look: Look = { turns: new Set(), sessions: false, permissions: false, conversation: false };
    const grown = new Set<string>();
    let shared: Shared = before;
    let { isKilled } = before;
    for (const event of events) {
      const { turnId, kind } = event;
      if (kind === 'turn.queued' || kind === 'turn.ended' || kind === 'turn.sent') look.turns.add(turnId ?? '');
      if (kind.startsWith('session.') || kind === 'turn.ended') look.sessions = true;
      if (kind.startsWith('permission.')) look.permissions = true;
      if (kind.startsWith('conversation.') || kind === 'turn.ended') look.conversation = true;
      if (kind === 'turn.started') isKilled = false;
      shared = sharedAfter(shared, event, placesIn(turns, before.last));
      if (turnId === null) continue;
      if (this.#partsOf(turnId).add(event)) grown.add(turnId);
      const n = byId.get(turnId);
      const item = n === undefined ? undefined : turns.get(n);
      if (item !== undefined) turns.set(item.turn.n, afterEvent(item, event));
    }
    for (const id of grown) {
      const item = turns.get(byId.get(id) ?? -1);
      if (item !== undefined) turns.set(item.turn.n, { ...item, parts: this.#partsOf(id).parts });
    }
    const { announced, receipts, warming, endings } = shared;
    this.state.setState({ turns, announced, receipts, warming, endings, isKilled });
    this.#look(look);
  }

  #partsOf(turnId: string): LiveParts {
    const parts = this.#parts.get(turnId) ?? new LiveParts();
    this.#parts.set(turnId, parts);
    return parts;
  }

  /** Reads again what events only name. */
  #look(what: Look): void {
    const looks = [...what.turns].map((id) => this.#readTurn(id));
    if (what.sessions) looks.push(this.#readSessions());
    if (what.permissions) looks.push(this.#readPermissions());
    if (what.conversation) looks.push(this.#readConversation());
    Promise.all(looks).catch((error) => {
      if (this.#closed) return;
      this.#owed = { ...what, turns: new Set([...(this.#owed?.turns ?? []), ...what.turns]) };
      this.state.setState({ error });
    });
  }

  async #readTurn(id: string): Promise<void> {
    const turn = await this.#newest.of(id, this.#engine.turn(id));
    if (turn === null) return;
    const known = this.state.getState().turns.get(turn.n);
    const item = { ...(known ?? itemOf(turn)), turn };
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

  async #readConversation(): Promise<void> {
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

/** A page of large values is short: the rest is read after it. */
async function readRange<T extends { readonly n: number }>(
  { after, upTo }: { after: number; upTo: number },
  read: (part: { after: number; limit: number }) => Promise<readonly T[]>,
): Promise<T[]> {
  const all: T[] = [];
  for (let last = after; last < upTo; ) {
    const part = await read({ after: last, limit: upTo - last });
    if (part.length === 0) break;
    all.push(...part.filter(({ n }) => n <= upTo));
    last = part.at(-1)?.n ?? upTo;
  }
  return all;
}

/** The last turn that was sent and has ended, and the first after it that is open, or is to come. */
function placesIn(turns: ReadonlyMap<number, TurnItem>, last: number): { head: number; next: number } {
  let next = last + 1;
  for (let n = last; n > 0; n -= 1) {
    const item = turns.get(n);
    if (item !== undefined && isOpen(item)) next = n;
    if (item === undefined || (!isOpen(item) && item.turn.sent !== null)) return { head: n, next };
  }
  return { head: 0, next };
}

function hasBegun(item: TurnItem): boolean {
  return isOpen(item) && item.turn.state !== 'queued';
}

function pageOf(n: number): number {
  return Math.floor((Math.max(n, 1) - 1) / PAGE);
}

/** What is to be read again. */
interface Look {
  readonly turns: Set<string>;
  sessions: boolean;
  permissions: boolean;
  conversation: boolean;
}

const HIDDEN_MS = 100;

/** In the next frame. A tab that is hidden, or is about to be, has none, and its state must not fall behind. */
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
