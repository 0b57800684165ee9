import { describe, expect, test } from 'vitest';
import { ThroughlineError } from '../core/errors.ts';
import type { PublicEvent } from '../core/public/event.ts';
import { checkFeeds, type Feed, type LiveFrame, MOST_FEEDS } from '../core/public/live-frame.ts';
import { Feeds } from './feeds.ts';

/** Conversations by name, with their number of events. Some events never arrive. */
function engine(lengths: Record<string, number>, hooks: { follow?: (id: string) => AsyncIterable<PublicEvent> } = {}) {
  const open = new Set<string>();
  const read = { count: 0 };
  async function* follow(id: string, { after, signal }: { after: number; signal: AbortSignal }) {
    open.add(id);
    try {
      for (let seq = after + 1; seq <= (lengths[id] ?? 0); seq += 1) {
        read.count += 1;
        yield { conversationId: id, seq } as PublicEvent;
      }
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    } finally {
      open.delete(id);
    }
  }
  return {
    open,
    read,
    async conversation(id: string) {
      if (lengths[id] === undefined) throw new ThroughlineError('not_found', `There is no conversation "${id}".`);
      return { id, lastSeq: lengths[id], logId: 'log' };
    },
    follow: (id: string, place: { after: number; signal: AbortSignal }) => hooks.follow?.(id) ?? follow(id, place),
    async *hints({ signal }: { signal: AbortSignal }) {
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
  };
}

const feed = (conversation: string, after = 0): Feed => ({
  feed: conversation,
  of: 'conversation',
  conversation,
  after,
});
const seqs = (frames: LiveFrame[], of: string) =>
  frames.flatMap((frame) => (frame.feed === of && frame.kind === 'event' ? [frame.event.seq] : []));

async function taken(feeds: Feeds, count: number, stop: AbortController, each: (frame: LiveFrame) => void = () => {}) {
  const frames: LiveFrame[] = [];
  for await (const frame of feeds.frames(stop.signal)) {
    frames.push(frame);
    each(frame);
    if (frames.length === count) break;
  }
  return frames;
}

describe('feeds of one stream', () => {
  test('take turns: a long feed gets no more than its share', async () => {
    const of = engine({ long: 1_000, short: 3 });
    const feeds = new Feeds(of, null);
    feeds.set([feed('long'), feed('short')]);
    const frames = await taken(feeds, 12, new AbortController());
    expect(seqs(frames, 'short')).toEqual([1, 2, 3]);
    expect(seqs(frames, 'long')).toEqual(Array.from({ length: 7 }, (_, i) => i + 1));
    await expect.poll(() => of.open.size).toBe(0); // all feeds end with the stream
  });

  test('are not read faster than the frames are consumed', async () => {
    const of = engine({ long: 1_000 });
    const feeds = new Feeds(of, null);
    feeds.set([feed('long')]);
    const frames = feeds.frames(new AbortController().signal);
    for (let i = 0; i < 3; i += 1) await frames.next(); // `began`, and two events
    for (let i = 0; i < 100; i += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(of.read.count).toBe(2);
    await frames.return(undefined);
  });

  test('do not wait for a slow one', async () => {
    const never = async function* (): AsyncGenerator<PublicEvent> {
      await new Promise(() => {});
    };
    const own = engine({ slow: 5, quick: 5 });
    const feeds = new Feeds({ ...own, follow: (id, place) => (id === 'slow' ? never() : own.follow(id, place)) }, null);
    feeds.set([feed('slow'), feed('quick')]);
    expect(seqs(await taken(feeds, 7, new AbortController()), 'quick')).toEqual([1, 2, 3, 4, 5]);
  });

  test('a feed that fails ends with its error, and the others continue', async () => {
    const feeds = new Feeds(engine({ there: 2 }), null);
    feeds.set([feed('gone'), { feed: 'board', of: 'board' }, feed('there'), { ...feed('there', 3), feed: 'ahead' }]);
    const frames = await taken(feeds, 6, new AbortController());
    const ended = frames.flatMap((frame) => (frame.kind === 'ended' ? [[frame.feed, frame.failure.code]] : []));
    expect(Object.fromEntries(ended)).toEqual({ gone: 'not_found', board: 'not_found', ahead: 'log_changed' });
    expect(seqs(frames, 'there')).toEqual([1, 2]);
  });

  test('an error that concerns all feeds ends the stream', async () => {
    const busy = new ThroughlineError('storage_busy', 'Busy.');
    const follow = (): AsyncIterable<PublicEvent> => {
      throw busy;
    };
    const feeds = new Feeds(engine({ chat: 2 }, { follow }), null);
    feeds.set([feed('chat')]);
    await expect(taken(feeds, 5, new AbortController())).rejects.toBe(busy);
  });

  test('can be added and removed while the stream runs; a removed feed yields nothing more', async () => {
    const of = engine({ one: 50, two: 50, three: 50 });
    const feeds = new Feeds(of, null);
    feeds.set([feed('one'), feed('two')]);
    const frames = await taken(feeds, 57, new AbortController(), ({ feed: name }) => {
      if (name !== 'one' || !feeds.names.includes('two')) return;
      feeds.set([feed('one', 40), feed('three', 45)]);
    });
    expect(seqs(frames, 'two')).toEqual([]);
    expect(seqs(frames, 'three')).toEqual([46, 47, 48, 49, 50]);
    expect(seqs(frames, 'one')).toEqual(Array.from({ length: 50 }, (_, i) => i + 1)); // it continued as it was
  });

  test('only eight feeds read older events at a time, and all of them get their events', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `c${i}`);
    const of = engine(Object.fromEntries(names.map((name) => [name, 30])));
    const feeds = new Feeds(of, null);
    feeds.set(names.map((name) => feed(name)));
    const frames = await taken(feeds, 20 * 31, new AbortController());
    for (const name of names) expect(seqs(frames, name)).toHaveLength(30);
    const early = frames.slice(0, frames.length / 4);
    expect(new Set(early.flatMap((frame) => (frame.kind === 'event' ? [frame.feed] : []))).size).toBe(8);
  });

  test('the first hint is for all conversations', async () => {
    const feeds = new Feeds(engine({}), null);
    feeds.set([{ feed: 'hints', of: 'hints' }]);
    const [first] = await taken(feeds, 1, new AbortController());
    expect(first).toEqual({ feed: 'hints', kind: 'hint', hint: { conversationId: null, seq: null } });
  });

  test('the listener for hints is removed when the stream ends, also while a hint is being delivered', async () => {
    for (const count of [1, 2]) {
      const of = engine({});
      const hints = ({ signal }: { signal: AbortSignal }) => of.follow('hints', { after: -1, signal }) as never;
      const feeds = new Feeds({ ...of, hints }, null);
      feeds.set([{ feed: 'hints', of: 'hints' }]);
      await taken(feeds, count, new AbortController());
      await new Promise(setImmediate);
      expect([...of.open]).toEqual([]);
    }
  });

  test('a signal ends the stream while it waits', async () => {
    const stop = new AbortController();
    const feeds = new Feeds(engine({ chat: 0 }), null);
    feeds.set([feed('chat')]);
    const reading = taken(feeds, 5, stop, () => stop.abort());
    expect(await reading).toHaveLength(1);
  });
});

test('feeds are checked', () => {
  const wrong: unknown[][] = [
    [{ feed: '', of: 'hints' }],
    [{ feed: 'a', of: 'nothing' }],
    [{ feed: 'a', of: 'conversation' }],
    [{ feed: 'a', of: 'conversation', conversation: 'x', after: -1 }],
    [{ feed: 'a', of: 'board', log: 5 }],
    [{ feed: 'a', of: 'board', afer: 5 }],
    [
      { feed: 'a', of: 'hints' },
      { feed: 'a', of: 'board' },
    ],
    Array.from({ length: MOST_FEEDS + 1 }, (_, i) => ({ feed: `${i}`, of: 'hints' })),
  ];
  for (const feeds of wrong) {
    expect(() => checkFeeds(feeds as Feed[]), JSON.stringify(feeds).slice(0, 80)).toThrow(ThroughlineError);
  }
});
