import { expect, test } from 'vitest';
import type { LiveFrame } from '../../../src/core/public/live-frame.ts';
import type { Live } from '../../../src/ports/engine/live.ts';
import { allEvents, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** Reads frames until one matches, and keeps all that it has read. */
class FrameReader {
  readonly frames: LiveFrame[] = [];
  readonly #iterator: AsyncIterator<LiveFrame>;

  constructor(live: Live) {
    this.#iterator = live[Symbol.asyncIterator]();
  }

  async until(matches: (frame: LiveFrame) => boolean): Promise<LiveFrame> {
    for (;;) {
      const { done, value } = await this.#iterator.next();
      if (done) throw new Error('The stream has ended.');
      this.frames.push(value);
      if (matches(value)) return value;
    }
  }

  /** The same, but a frame that was read before counts as well. */
  async untilSeen(matches: (frame: LiveFrame) => boolean): Promise<void> {
    if (!this.frames.some(matches)) await this.until(matches);
  }

  next = () => this.#iterator.next();

  events(feed: string) {
    return this.frames.flatMap((frame) => (frame.kind === 'event' && frame.feed === feed ? [frame.event] : []));
  }
}

const ended = (feed: string) => (frame: LiveFrame) =>
  frame.feed === feed && frame.kind === 'event' && frame.event.kind === 'turn.ended';

test('one stream carries hints, the board and conversations, each from its own number on', async () => {
  await using home = new Home();
  const tl = await home.open();
  await run(tl.engine, 'one', 'Hello.');
  await run(tl.engine, 'two', 'Hello.');
  const { id, lastSeq, logId } = await tl.engine.conversation('two');
  const live = tl.live([
    { feed: 'hints', of: 'hints' },
    { feed: 'board', of: 'board' },
    { feed: 'first', of: 'conversation', conversation: 'one' },
    { feed: 'second', of: 'conversation', conversation: id, after: lastSeq - 1, log: logId },
  ]);
  const reader = new FrameReader(live);
  await reader.until(ended('first'));
  expect(live.state).toMatchObject({ state: 'open', failure: null });
  await reader.untilSeen(({ feed, kind }) => feed === 'second' && kind === 'event');
  expect(reader.events('first')).toEqual(await allEvents(tl.engine, 'one'));
  expect(reader.frames).toContainEqual({ feed: 'second', kind: 'began', seq: lastSeq, logId });
  expect(reader.frames).toContainEqual({
    feed: 'hints',
    kind: 'hint',
    hint: { conversationId: null, seq: null },
  });
  const { tasks } = await tl.tasks.add({ goal: 'Say hello.' });
  const task = await reader.until(({ kind }) => kind === 'task');
  expect(task).toMatchObject({ feed: 'board', event: { taskId: tasks[0]?.id, seq: 1 } });
  await tl.conversation('two').ask('More.');
  await reader.until(ended('second'));
  expect(reader.events('second')).toEqual((await allEvents(tl.engine, 'two')).slice(lastSeq - 1));
  await reader.untilSeen((frame) => frame.kind === 'hint' && frame.hint.conversationId === id);
  live.close();
  live.close();
  expect(live.state.state).toBe('closed');
  while (!(await reader.next()).done);
});

test('feeds are added and ended while the stream is open; a feed that is added again begins at its new number', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['one', 'two']) await run(tl.engine, key, 'Hello.');
  const live = tl.live();
  live.follow({ feed: 'a', of: 'conversation', conversation: 'one' });
  const reader = new FrameReader(live);
  await reader.until(ended('a'));
  live.follow({ feed: 'b', of: 'conversation', conversation: 'two' });
  await reader.until(ended('b'));
  live.unfollow('b');
  live.unfollow('nothing');
  live.follow({ feed: 'a', of: 'conversation', conversation: 'one', after: 3 });
  await reader.until(ended('a'));
  const all = await allEvents(tl.engine, 'one');
  expect(reader.events('a')).toEqual([...all, ...all.slice(3)]);
  const before = reader.events('b').length;
  await tl.conversation('two').ask('More.');
  await tl.conversation('one').ask('More.');
  await reader.until(ended('a'));
  expect(reader.events('b')).toHaveLength(before);
  expect(() => live.follow({ feed: 'x', of: 'conversation', conversation: '' })).toThrow(/must be a non-empty text/);
  live.close();
});

test('an error of one feed ends that feed, and not the others', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['one', 'two']) await run(tl.engine, key, 'Hello.');
  const live = tl.live([
    { feed: 'none', of: 'conversation', conversation: 'nothing' },
    { feed: 'ahead', of: 'conversation', conversation: 'two', after: 1_000 },
    { feed: 'other log', of: 'conversation', conversation: 'two', after: 1, log: 'another' },
    { feed: 'board', of: 'board', after: 1_000 },
    { feed: 'erased', of: 'conversation', conversation: 'two' },
    { feed: 'chat', of: 'conversation', conversation: 'one' },
  ]);
  const reader = new FrameReader(live);
  const codes = () =>
    Object.fromEntries(
      reader.frames.flatMap((frame) => (frame.kind === 'ended' ? [[frame.feed, frame.failure.code]] : [])),
    );
  const failures = { none: 'not_found', ahead: 'log_changed', 'other log': 'log_changed', board: 'log_changed' };
  await reader.until(ended('erased'));
  await tl.engine.erase('two');
  await reader.untilSeen(() => Object.keys(codes()).length === 5);
  expect(codes()).toEqual({ ...failures, erased: 'not_found' });
  await tl.conversation('one').ask('More.');
  await reader.until(() => reader.events('chat').filter(({ kind }) => kind === 'turn.ended').length === 2);
  expect(reader.events('chat')).toEqual(await allEvents(tl.engine, 'one'));
  live.close();
});

test('the stream of an owner carries nothing of another owner', async () => {
  await using home = new Home();
  const tl = await home.open();
  await run(tl.engine, 'chat', 'Hello.');
  const ann = tl.as('ann');
  const live = ann.live([
    { feed: 'hints', of: 'hints' },
    { feed: 'board', of: 'board' },
    { feed: 'chat', of: 'conversation', conversation: 'chat' },
  ]);
  const reader = new FrameReader(live);
  await reader.until(({ kind }) => kind === 'ended');
  await tl.conversation('chat').ask('More.');
  await tl.tasks.run({ goal: 'Say hello.' });
  await ann.conversation('hers').ask('Hello.');
  await reader.until((frame) => frame.kind === 'hint' && frame.hint.conversationId !== null);
  const { id } = await ann.engine.conversation('hers');
  for (const frame of reader.frames) {
    if (frame.kind === 'hint') expect([null, id]).toContain(frame.hint.conversationId);
    else expect(['ended', 'began']).toContain(frame.kind);
  }
  live.close();
});
