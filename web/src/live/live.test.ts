import {
  type ConversationEvent,
  type Feed,
  type LiveFrame,
  type LiveState,
  type ThroughlineClient,
  ThroughlineError,
} from 'throughline/client';
import { expect, test } from 'vitest';
import type { HubParts } from './hub.ts';
import { Live } from './live.ts';

/** A browser with a server: locks, channels and streams, and conversations whose events are only numbers. */
class World {
  readonly #held = new Map<string, Lock[]>();
  readonly #channels = new Map<{ onmessage: ((event: MessageEvent) => void) | null }, string>();
  readonly streams: Stream[] = [];
  readonly lengths = new Map<string, number>();
  /** How many events were read in pages. */
  paged = 0;
  readonly hidden = new Set<string>();
  /** Tabs that neither send nor receive messages. */
  readonly frozen = new Set<string>();

  tab(name = 'tab', parts: Partial<HubParts> = {}): Live {
    const channel = {
      onmessage: null as ((event: MessageEvent) => void) | null,
      postMessage: (data: unknown) => {
        if (this.frozen.has(name)) return;
        for (const [other, owner] of this.#channels) {
          if (other === channel || this.frozen.has(owner)) continue;
          queueMicrotask(() => other.onmessage?.({ data: structuredClone(data) } as MessageEvent));
        }
      },
      close: () => void this.#channels.delete(channel),
    };
    this.#channels.set(channel, name);
    const engine = {
      events: async (id: string, { before, limit }: { before: number; limit: number }) => {
        const from = Math.max(1, before - limit);
        this.paged += before - from;
        return Array.from({ length: before - from }, (_, i) => eventOf(id, from + i));
      },
    };
    return new Live(
      { engine } as unknown as ThroughlineClient,
      {
        name: 'ann',
        tabs: { locks: { request: this.#request as LockManager['request'] }, channel },
        open: (feeds) => new Stream(this, feeds),
        board: async () => ({ after: 0, log: 'log' }),
        isVisible: () => !this.hidden.has(name),
        silentMs: 600_000, // a slow test must not look like a leader that hangs
        ...parts,
      },
      () => () => {},
    );
  }

  get open(): Stream[] {
    return this.streams.filter(({ state }) => state.state !== 'closed');
  }

  /** New events of a conversation, which every stream that follows it gets. */
  say(conversation: string, count = 1): void {
    for (let i = 0; i < count; i += 1) {
      this.lengths.set(conversation, (this.lengths.get(conversation) ?? 0) + 1);
      for (const stream of this.open) stream.tell();
    }
  }

  readonly #request = (name: string, ...rest: unknown[]): Promise<unknown> => {
    const work = rest.at(-1) as () => unknown;
    const { steal, signal } = (rest.length > 1 ? rest[0] : {}) as { steal?: boolean; signal?: AbortSignal };
    const line = this.#held.get(name) ?? [];
    this.#held.set(name, line);
    return new Promise((resolve, reject) => {
      const lock: Lock = { reject, isHeld: false, run: () => undefined };
      lock.run = () => {
        lock.isHeld = true;
        Promise.resolve(work())
          .then(resolve, reject)
          .finally(() => leave());
      };
      const leave = () => {
        if (!line.includes(lock)) return;
        line.splice(line.indexOf(lock), 1);
        if (line[0] !== undefined && !line[0].isHeld) line[0].run();
      };
      signal?.addEventListener('abort', () => {
        if (lock.isHeld) return;
        line.splice(line.indexOf(lock), 1);
        reject(new DOMException('aborted', 'AbortError'));
      });
      if (steal) line.shift()?.reject(new DOMException('stolen', 'AbortError'));
      if (steal) line.unshift(lock);
      else line.push(lock);
      if (line[0] === lock) queueMicrotask(() => lock.run());
    });
  };
}

interface Lock {
  readonly reject: (error: unknown) => void;
  run: () => void;
  isHeld: boolean;
}

const eventOf = (conversationId: string, seq: number) => ({ conversationId, seq }) as ConversationEvent;

/** A stream of a server that has only conversations. */
class Stream {
  readonly feeds = new Map<string, { of: Feed; after: number }>();
  readonly #world: World;
  readonly #listeners = new Set<(state: LiveState) => void>();
  #frames: LiveFrame[] = [];
  #wake = () => {};
  /** It seems open, but nothing arrives. */
  isFrozen = false;
  state: LiveState = { state: 'open', since: 0, failure: null };

  constructor(world: World, feeds: readonly Feed[]) {
    this.#world = world;
    world.streams.push(this);
    for (const feed of feeds) this.follow(feed);
  }

  follow(feed: Feed): void {
    this.feeds.set(feed.feed, { of: feed, after: feed.of === 'conversation' ? (feed.after ?? 0) : 0 });
    if (feed.of === 'hints')
      this.#frames.push({ feed: feed.feed, kind: 'hint', hint: { conversationId: null, seq: null } });
    this.tell();
  }

  unfollow(name: string): void {
    this.feeds.delete(name);
  }

  tell(): void {
    for (const [feed, entry] of this.feeds) {
      if (entry.of.of !== 'conversation' || this.isFrozen) continue;
      const { conversation } = entry.of;
      const last = this.#world.lengths.get(conversation);
      if (last === undefined)
        this.#frames.push({ feed, kind: 'ended', failure: { code: 'not_found', message: 'Gone.' } });
      for (; entry.after < (last ?? 0); entry.after += 1) {
        this.#frames.push({ feed, kind: 'event', event: eventOf(conversation, entry.after + 1) });
      }
    }
    this.#wake();
  }

  onState(listener: (state: LiveState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(state: LiveState['state']): void {
    this.state = { state, since: 1, failure: null };
    for (const listener of this.#listeners) listener(this.state);
    this.#wake();
  }

  wake(): void {}

  close(): void {
    if (this.state.state !== 'closed') this.set('closed');
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LiveFrame> {
    while (this.state.state !== 'closed') {
      const frame = this.isFrozen ? undefined : this.#frames.shift();
      if (frame === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else yield frame;
    }
  }
}

function reading(live: Live, conversation: string, after = 0, log = 'log') {
  const seen = { seqs: [] as number[], error: null as unknown, stop: () => {} };
  seen.stop = live.follow(
    conversation,
    { after, log },
    { onEvent: ({ seq }) => seen.seqs.push(seq), onEnd: (error) => (seen.error = error) },
  );
  return seen;
}

const upTo = (last: number, after = 0) => Array.from({ length: last - after }, (_, i) => after + i + 1);

test('ten tabs share one stream, which follows only what some of them want', async () => {
  const world = new World();
  world.say('one', 3);
  world.say('two', 3);
  const tabs = Array.from({ length: 10 }, () => world.tab());
  const all = tabs.map((tab, i) => reading(tab, i % 2 === 0 ? 'one' : 'two'));
  await expect.poll(() => all.every(({ seqs }) => seqs.length === 3)).toBe(true);
  world.say('one', 5);
  world.say('two', 5);
  await expect.poll(() => all.every(({ seqs }) => seqs.length === 8)).toBe(true);
  for (const { seqs } of all) expect(seqs).toEqual(upTo(8));
  expect(world.streams).toHaveLength(1);
  expect(tabs.filter(({ isLeader }) => isLeader)).toHaveLength(1);
  expect(tabs.map(({ state }) => state.state)).toEqual(tabs.map(() => 'open'));
  for (const [i, one] of all.entries()) if (i % 2 === 0) one.stop();
  const followed = () => [...(world.streams[0]?.feeds.keys() ?? [])];
  await expect.poll(followed).toEqual(['hints', 'c:two']);
  for (const tab of tabs) if (!tab.isLeader) tab.close(); // without a message: the leader notices it by their locks
  await expect.poll(followed).toEqual(['hints']);
  tabs.find(({ isLeader }) => isLeader)?.close();
});

test('when the leader is closed, another tab leads: no event is lost or repeated', async () => {
  const world = new World();
  world.say('chat', 3);
  const tabs = Array.from({ length: 4 }, () => world.tab());
  const all = tabs.map((tab) => reading(tab, 'chat'));
  await expect.poll(() => all.every(({ seqs }) => seqs.length === 3)).toBe(true);
  for (let left = 4; left > 1; left -= 1) {
    const leader = tabs.findIndex(({ isLeader }) => isLeader);
    tabs.splice(leader, 1)[0]?.close();
    all.splice(leader, 1);
    world.say('chat', 2); // while nobody leads
    await expect.poll(() => tabs.some(({ isLeader }) => isLeader)).toBe(true);
    world.say('chat', 2);
    const last = world.lengths.get('chat') ?? 0;
    await expect.poll(() => all.every(({ seqs }) => seqs.length === last)).toBe(true);
    for (const { seqs } of all) expect(seqs).toEqual(upTo(last));
  }
  expect(world.open).toHaveLength(1);
  tabs[0]?.close();
});

test('a late tab reads missing events in pages, and then follows', async () => {
  const world = new World();
  world.say('chat', 2_000);
  const first = world.tab();
  const early = reading(first, 'chat', 1_990);
  await expect.poll(() => early.seqs.length).toBe(10);
  const late = reading(world.tab(), 'chat', 700);
  world.say('chat', 3); // while it reads
  await expect.poll(() => late.seqs.length).toBe(1_303);
  expect(late.seqs).toEqual(upTo(2_003, 700));
  expect(early.seqs).toEqual(upTo(2_003, 1_990));
  expect(world.paged).toBeGreaterThanOrEqual(1_290);
  expect(world.streams).toHaveLength(1);
});

test('a visible tab takes the lock from a leader that does not answer; a hidden tab does not', async () => {
  const world = new World();
  world.say('chat', 1);
  const quick = { pingMs: 10, silentMs: 60, restMs: 20 };
  const first = world.tab('first', quick);
  const own = reading(first, 'chat');
  await expect.poll(() => first.isLeader).toBe(true);
  world.hidden.add('hidden');
  const hidden = world.tab('hidden', quick);
  const second = world.tab('second', quick);
  const seen = [reading(hidden, 'chat'), reading(second, 'chat')];
  await expect.poll(() => seen.every(({ seqs }) => seqs.length === 1)).toBe(true);
  world.frozen.add('first'); // it keeps the lock and its stream
  world.say('chat', 2);
  await expect.poll(() => second.isLeader).toBe(true);
  expect(hidden.isLeader).toBe(false);
  await expect.poll(() => seen.every(({ seqs }) => seqs.length === 3)).toBe(true);
  await expect.poll(() => first.isLeader).toBe(false); // its lock was stolen
  world.frozen.delete('first');
  world.say('chat', 2);
  for (const { seqs } of seen) await expect.poll(() => seqs).toEqual(upTo(5));
  await expect.poll(() => own.seqs).toEqual(upTo(5));
  expect(world.open).toHaveLength(1);
  for (const tab of [first, hidden, second]) tab.close();
});

test('after a replaced log or an erased conversation, its readers end and the others continue', async () => {
  const world = new World();
  world.say('chat', 3);
  const tab = world.tab();
  const [fine, gone] = [reading(tab, 'chat'), reading(tab, 'none')];
  await expect.poll(() => gone.error).toMatchObject({ code: 'not_found' });
  const other = reading(tab, 'chat', 1, 'another');
  await expect.poll(() => other.error).toMatchObject({ code: 'log_changed' });
  expect(other.error).toBeInstanceOf(ThroughlineError);
  world.say('chat', 1);
  await expect.poll(() => fine.seqs).toEqual(upTo(4));
});

test('without locks every tab has its own stream', async () => {
  const world = new World();
  world.say('chat', 2);
  const tabs = [world.tab('a', { tabs: null }), world.tab('b', { tabs: null })];
  const all = tabs.map((tab) => reading(tab, 'chat'));
  await expect.poll(() => all.map(({ seqs }) => seqs)).toEqual([upTo(2), upTo(2)]);
  expect(world.streams).toHaveLength(2);
});

test('hints and the board reach every tab that listens; states are passed on when they change', async () => {
  const world = new World();
  const tabs = [world.tab(), world.tab()];
  const hints: unknown[] = [];
  const boards: string[] = [];
  const states: string[] = [];
  for (const tab of tabs) tab.onHint((hint) => hints.push(hint.conversationId));
  tabs[1]?.onState(({ state }) => states.push(state));
  const stop = tabs[1]?.onBoard(() => boards.push('task'));
  await expect.poll(() => hints).toEqual([null, null]);
  await expect.poll(() => world.streams[0]?.feeds.has('board')).toBe(true);
  stop?.();
  await expect.poll(() => world.streams[0]?.feeds.has('board')).toBe(false);
  world.streams[0]?.set('waiting');
  world.streams[0]?.set('open');
  await expect.poll(() => states.slice(-2)).toEqual(['waiting', 'open']);
  expect(tabs[1]?.state.state).toBe('open');
  for (const tab of tabs) tab.close();
});
