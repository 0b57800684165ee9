import {
  type ConversationEvent,
  type Failure,
  type Hint,
  type ThroughlineClient,
  ThroughlineError,
} from 'throughline/client';
import { Cursor } from './cursor.ts';
import { Hub, type HubListener, type HubParts, type HubState, type Message } from './hub.ts';

export interface FollowFrom {
  /** The number of the last event that the reader has. */
  readonly after: number;
  /** The log that it counts in. */
  readonly log: string;
}

export interface Follower {
  /** In order, without gaps or doubles. */
  onEvent(event: ConversationEvent): void;
  /** The conversation is gone, its log is another one now, or what is stored is damaged. Nothing more comes. */
  onEnd(error: unknown): void;
}

interface Reading {
  readonly conversation: string;
  readonly log: string;
  readonly cursor: Cursor;
  readonly follower: Follower;
  isFilling: boolean;
}

/** So many events are read at once where some are missing. */
const PAGE = 500;

/**
 * Everything that the page hears from the server. Views read their state once, and then only what has changed. All tabs share one
 * stream (`hub.ts`).
 */
export class Live implements HubListener {
  readonly #tl: Pick<ThroughlineClient, 'engine'>;
  readonly #hub: Hub;
  readonly #readings = new Set<Reading>();
  readonly #hinted = new Set<(hint: Hint) => void>();
  readonly #boards = new Set<() => void>();
  readonly #states = new Set<(state: HubState) => void>();
  readonly #left: () => void;
  #told = '';

  constructor(tl: ThroughlineClient, parts: HubParts = partsOf(tl), page: PageEvents = BROWSER) {
    this.#tl = tl;
    this.#hub = new Hub(parts, this);
    this.#left = page({ wake: () => this.#hub.wake(), freeze: () => this.#hub.resign() });
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

  /** Somebody wants to be connected now. */
  wake(): void {
    this.#hub.wake();
  }

  close(): void {
    this.#left();
    this.#readings.clear();
    this.#hub.close();
  }

  // ── of the hub ──

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

  /** Said again and again: it is the leader's sign of life. */
  #onState(state: HubState): void {
    const isNew = JSON.stringify(state) !== this.#told;
    this.#told = JSON.stringify(state);
    if (isNew) for (const listener of this.#states) listener(state);
    if (state.state === 'open') for (const reading of this.#readings) this.#fill(reading);
  }

  #onFrame(frame: Extract<Message, { type: 'frame' }>['frame']): void {
    if (frame.kind === 'hint') for (const listener of this.#hinted) listener(frame.hint);
    // When the board is followed anew, something may have happened before.
    else if (frame.kind === 'task' || (frame.kind === 'began' && frame.feed === 'board')) {
      for (const listener of this.#boards) listener();
    } else if (frame.kind === 'event') {
      for (const reading of this.#of(frame.feed)) this.#take(reading, [frame.event]);
    }
  }

  #onAt({ conversation, seq, logId }: Extract<Message, { type: 'at' }>): void {
    for (const reading of this.#of(conversation)) {
      if (reading.log !== logId) {
        this.#end(reading, new ThroughlineError('log_changed', 'The log of this conversation is another one now.'));
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

  /** Reads what is missing in pages. What comes meanwhile waits behind it. */
  #fill(reading: Reading): void {
    if (reading.isFilling || reading.cursor.missingBefore === null) return;
    reading.isFilling = true;
    this.#readMissing(reading)
      .catch((error: unknown) => {
        // When the server is back, the next state or event tries again.
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

/** What happens to the tab. Returns how to stop listening. */
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
  // A page of an insecure origin has none.
  const locks = (navigator as { locks?: LockManager }).locks ?? null;
  return {
    name,
    tabs: locks && { locks, channel: new BroadcastChannel(name) },
    open: (feeds) => tl.live(feeds),
    board: async () => ({ after: await tl.tasks.lastSeq(), log: await tl.tasks.logId() }),
    isVisible: () => document.visibilityState === 'visible',
  };
}
