import { expect, test } from 'vitest';
import type { LiveFrame } from '../../../src/core/public/live-frame.ts';
import type { Live } from '../../../src/ports/engine/live.ts';
import { allEvents, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

/** Takes frames until one is what is waited for; all of them so far are kept. */
class Taking {
  readonly frames: LiveFrame[] = [];
  readonly #iterator: AsyncIterator<LiveFrame>;

  constructor(live: Live) {
    this.#iterator = live[Symbol.asyncIterator]();
  }

  async until(isIt: (frame: LiveFrame) => boolean): Promise<LiveFrame> {
    for (;;) {
      const { done, value } = await this.#iterator.next();
      if (done) throw new Error('The stream has ended.');
      this.frames.push(value);
      if (isIt(value)) return value;
    }
  }

  /** The same, unless there was one already. */
  async seen(isIt: (frame: LiveFrame) => boolean): Promise<void> {
    if (!this.frames.some(isIt)) await this.until(isIt);
  }

  rest = () => this.#iterator.next();

  events(feed: string) {
    return this.frames.flatMap((frame) => (frame.kind === 'event' && frame.feed === feed ? [frame.event] : []));
  }
}

const ended = (feed: string) => (frame: LiveFrame) =>
  frame.feed === feed && frame.kind === 'event' && frame.event.kind === 'turn.ended';

test('one stream has hints, the board and conversations, each from its own place', async () => {
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
  const taking = new Taking(live);
  await taking.until(ended('first'));
  expect(live.state).toMatchObject({ state: 'open', failure: null });
  await taking.seen(({ feed, kind }) => feed === 'second' && kind === 'event');
  expect(taking.events('first')).toEqual(await allEvents(tl.engine, 'one'));
  expect(taking.frames).toContainEqual({ feed: 'second', kind: 'began', seq: lastSeq, logId });
  expect(taking.frames).toContainEqual({
    feed: 'hints',
    kind: 'hint',
    hint: { conversationId: null, seq: null },
  });
  const { tasks } = await tl.tasks.add({ goal: 'Say hello.' });
  const task = await taking.until(({ kind }) => kind === 'task');
  expect(task).toMatchObject({ feed: 'board', event: { taskId: tasks[0]?.id, seq: 1 } });
  await tl.conversation('two').ask('More.');
  await taking.until(ended('second'));
  expect(taking.events('second')).toEqual((await allEvents(tl.engine, 'two')).slice(lastSeq - 1));
  await taking.seen((frame) => frame.kind === 'hint' && frame.hint.conversationId === id);
  live.close();
  live.close();
  expect(live.state.state).toBe('closed');
  while (!(await taking.rest()).done);
});

test('feeds are added and ended while it is open; the same name again begins anew, at its own place', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['one', 'two']) await run(tl.engine, key, 'Hello.');
  const live = tl.live();
  live.follow({ feed: 'a', of: 'conversation', conversation: 'one' });
  const taking = new Taking(live);
  await taking.until(ended('a'));
  live.follow({ feed: 'b', of: 'conversation', conversation: 'two' });
  await taking.until(ended('b'));
  live.unfollow('b');
  live.unfollow('nothing');
  live.follow({ feed: 'a', of: 'conversation', conversation: 'one', after: 3 });
  await taking.until(ended('a'));
  const all = await allEvents(tl.engine, 'one');
  expect(taking.events('a')).toEqual([...all, ...all.slice(3)]);
  const before = taking.events('b').length;
  await tl.conversation('two').ask('More.');
  await tl.conversation('one').ask('More.');
  await taking.until(ended('a'));
  expect(taking.events('b')).toHaveLength(before);
  expect(() => live.follow({ feed: 'x', of: 'conversation', conversation: '' })).toThrow(/must be a non-empty text/);
  live.close();
});

test('what is wrong with one feed ends that one, and not the others', async () => {
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
  const taking = new Taking(live);
  const codes = () =>
    Object.fromEntries(
      taking.frames.flatMap((frame) => (frame.kind === 'ended' ? [[frame.feed, frame.failure.code]] : [])),
    );
  const lost = { none: 'not_found', ahead: 'log_changed', 'other log': 'log_changed', board: 'log_changed' };
  await taking.until(ended('erased'));
  await tl.engine.erase('two');
  await taking.seen(() => Object.keys(codes()).length === 5);
  expect(codes()).toEqual({ ...lost, erased: 'not_found' });
  await tl.conversation('one').ask('More.');
  await taking.until(() => taking.events('chat').filter(({ kind }) => kind === 'turn.ended').length === 2);
  expect(taking.events('chat')).toEqual(await allEvents(tl.engine, 'one'));
  live.close();
});

test('another owner sees nothing of it', async () => {
  await using home = new Home();
  const tl = await home.open();
  await run(tl.engine, 'chat', 'Hello.');
  const ann = tl.as('ann');
  const live = ann.live([
    { feed: 'hints', of: 'hints' },
    { feed: 'board', of: 'board' },
    { feed: 'chat', of: 'conversation', conversation: 'chat' },
  ]);
  const taking = new Taking(live);
  await taking.until(({ kind }) => kind === 'ended');
  await tl.conversation('chat').ask('More.');
  await tl.tasks.run({ goal: 'Say hello.' });
  await ann.conversation('hers').ask('Hello.');
  await taking.until((frame) => frame.kind === 'hint' && frame.hint.conversationId !== null);
  const { id } = await ann.engine.conversation('hers');
  for (const frame of taking.frames) {
    if (frame.kind === 'hint') expect([null, id]).toContain(frame.hint.conversationId);
    else expect(['ended', 'began']).toContain(frame.kind);
  }
  live.close();
});
