import {
  type ConversationEvent,
  type Failure,
  type Hint,
  type ThroughlineClient,
  ThroughlineError,
} from 'throughline/client';
import { Cursor } from './cursor.ts';
import { Hub, type HubListener, type HubParts, type HubState, type Message } from './hub.ts';

interface FollowFrom {
  /** The number of the last event that the reader has. */
  readonly after: number;
  /** The id of the log of that event. */
  readonly log: string;
}

export interface Follower {
  /** In order, without gaps or duplicates. */
  onEvent(event: ConversationEvent): void;
  /** The conversation was erased, its log was replaced, or its data is damaged. No more events follow. */
  onEnd(error: unknown): void;
}

interface Reading {
  readonly conversation: string;
  readonly log: string;
  readonly cursor: Cursor;
  readonly follower: Follower;
  isFilling: boolean;
}

/** How many missing events are read at once. */
const PAGE = 500;

/**
 * All changes that the server reports. Views read their state once, and then only what has changed. All tabs share one stream
 * (`hub.ts`).
 */
export class Live implements HubListener {
  readonly #tl: Pick<ThroughlineClient, 'engine'>;
  readonly #hub: Hub;
  readonly #readings = new Set<Reading>();
  readonly #hinted = new Set<(hint: Hint) => void>();
  readonly #boards = new Set<() => void>();
  readonly #states = new Set<(state: HubState) => void>();
  readonly #stopPageEvents: () => void;
  /** The last state that was passed on, as JSON. */
  #lastState = '';

  constructor(tl: ThroughlineClient, parts: HubParts = partsOf(tl), page: PageEvents = BROWSER) {
    this.#tl = tl;
    this.#hub = new Hub(parts, this);
    this.#stopPageEvents = page({ wake: () => this.#hub.wake(), freeze: () => this.#hub.resign() });
  }

  /** Follows a conversation, by its id, until the returned function is called. */
  follow(conversation: string, { after, log }: FollowFrom, follower: Follower): () => void {
    const reading = { conversation, log, cursor: new Cursor(after), follower, isFilling: false };
    this.#readings.add(reading);
    this.#hub.tellWants();
    return () => {
      if (this.#readings.delete(reading)) this.#hub.tellWants();
    };
  }

  /** Calls back when a conversation may have changed, until the returned function is called. */
  onHint(listener: (hint: Hint) => void): () => void {
    this.#hinted.add(listener);
    return () => this.#hinted.delete(listener);
  }

  /** Calls back when a task may have changed, until the returned function is called. */
  onBoard(listener: () => void): () => void {
    this.#boards.add(listener);
    if (this.#boards.size === 1) this.#hub.tellWants();
    return () => {
      if (this.#boards.delete(listener) && this.#boards.size === 0) this.#hub.tellWants();
    };
  }

  /** The connection to the server, whichever tab has it. */
  get state(): HubState {
    return this.#hub.state;
  }

  get isLeader(): boolean {
    return this.#hub.isLeader;
  }

  /** Calls back after every change of the state, until the returned function is called. */
  onState(listener: (state: HubState) => void): () => void {
    this.#states.add(listener);
    return () => this.#states.delete(listener);
  }

  /** Tries to connect now. */
  wake(): void {
    this.#hub.wake();
  }

  close(): void {
    this.#stopPageEvents();
    this.#readings.clear();
    this.#hub.close();
  }

  // ── called by the hub ──

  wants() {
    const wants = [...this.#readings].map(({ conversation, log, cursor }) => ({
      conversation,
      after: cursor.after,
      log,
    }));
    return { wants, board: this.#boards.size > 0 };
  }

  onMessage(message: Message): void {
    if (message.type === 'leader') this.#onState(message.state);
    else if (message.type === 'at') this.#onAt(message);
    else if (message.type === 'ended') this.#onEnded(message.conversation, message.failure);
    else if (message.type === 'frame') this.#onFrame(message.frame);
  }

  /** The leader repeats its state as the answer to pings. */
  #onState(state: HubState): void {
    const isNew = JSON.stringify(state) !== this.#lastState;
    this.#lastState = JSON.stringify(state);
    if (isNew) for (const listener of this.#states) listener(state);
    if (state.state === 'open') for (const reading of this.#readings) this.#fill(reading);
  }

  #onFrame(frame: Extract<Message, { type: 'frame' }>['frame']): void {
    if (frame.kind === 'hint') for (const listener of this.#hinted) listener(frame.hint);
    // Something may have happened before the board was followed.
    else if (frame.kind === 'task' || (frame.kind === 'began' && frame.feed === 'board')) {
      for (const listener of this.#boards) listener();
    } else if (frame.kind === 'event') {
      for (const reading of this.#of(frame.feed)) this.#take(reading, [frame.event]);
    }
  }

  #onAt({ conversation, seq, logId }: Extract<Message, { type: 'at' }>): void {
    for (const reading of this.#of(conversation)) {
      if (reading.log !== logId) {
        const hint = { hint: 'Reload the page.' };
        this.#end(reading, new ThroughlineError('log_changed', 'The log of this conversation was replaced.', hint));
        continue;
      }
      reading.cursor.exists(seq);
      this.#fill(reading);
    }
  }

  #onEnded(conversation: string, { code, message, hint }: Failure): void {
    const error = new ThroughlineError(code, message, hint === undefined ? {} : { hint });
    for (const reading of this.#of(conversation)) this.#end(reading, error);
  }

  #of(conversation: string): Reading[] {
    return [...this.#readings].filter((reading) => reading.conversation === conversation);
  }

  #take(reading: Reading, events: readonly ConversationEvent[]): void {
    for (const event of reading.cursor.take(events)) {
      if (this.#readings.has(reading)) reading.follower.onEvent(event);
    }
    this.#fill(reading);
  }

  /** Reads missing events in pages. Events that arrive meanwhile wait. */
  #fill(reading: Reading): void {
    if (reading.isFilling || reading.cursor.missingBefore === null) return;
    reading.isFilling = true;
    this.#readMissing(reading)
      .catch((error: unknown) => {
        // The next state or event tries again when the server is back.
        const isAway = error instanceof ThroughlineError && error.code === 'unreachable';
        if (!isAway && this.#readings.has(reading)) this.#end(reading, error);
      })
      .finally(() => {
        reading.isFilling = false;
      });
  }

  async #readMissing(reading: Reading): Promise<void> {
    const { conversation, log, cursor } = reading;
    for (let end = cursor.missingBefore; end !== null; end = cursor.missingBefore) {
      const found: ConversationEvent[] = [];
      for (let before = end; before > cursor.after + 1; ) {
        const page = await this.#tl.engine.events(conversation, { before, log, limit: PAGE });
        const [first] = page;
        if (first === undefined) break;
        found.push(...page);
        before = first.seq;
      }
      if (found.length === 0) return;
      this.#take(reading, found);
    }
  }

  #end(reading: Reading, error: unknown): void {
    if (!this.#readings.delete(reading)) return;
    this.#hub.tellWants();
    reading.follower.onEnd(error);
  }
}

/** Calls the handlers when the tab becomes visible or is frozen. Returns a function that stops it. */
type PageEvents = (handlers: { wake: () => void; freeze: () => void }) => () => void;

const BROWSER: PageEvents = ({ wake, freeze }) => {
  const stop = new AbortController();
  const { signal } = stop;
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && wake(), { signal });
  document.addEventListener('freeze', freeze, { signal });
  document.addEventListener('resume', wake, { signal });
  addEventListener('pagehide', freeze, { signal });
  addEventListener('pageshow', wake, { signal });
  addEventListener('online', wake, { signal });
  return () => stop.abort();
};

function partsOf(tl: ThroughlineClient): HubParts {
  const name = `throughline ${tl.engine.owner}`;
  // A page of an insecure origin has no locks.
  const locks = (navigator as { locks?: LockManager }).locks ?? null;
  return {
    name,
    tabs: locks && { locks, channel: new BroadcastChannel(name) },
    open: (feeds) => tl.live(feeds),
    board: async () => ({ after: await tl.tasks.lastSeq(), log: await tl.tasks.logId() }),
    isVisible: () => document.visibilityState === 'visible',
  };
}
