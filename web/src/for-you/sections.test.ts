import type { Conversation, Permission, Task } from 'throughline/client';
import { describe, expect, test } from 'vitest';
import { firstSeen, isNew, parseSeen, withSeen } from '../data/seen.ts';
import { noticesOf } from './notify.ts';
import { type ForYouFacts, sectionsOf, titleOf } from './sections.ts';

const row = (id: string, more: Partial<Conversation> = {}) =>
  ({
    id,
    title: id,
    state: 'idle',
    historyCount: 1,
    lastSeq: 5,
    updatedAt: 10,
    openPermissions: 0,
    open: 0,
    stranded: null,
    ...more,
  }) as Conversation;
const permission = (id: string, conversationId: string, state = 'open') =>
  ({ id, conversationId, state, title: 'May I?' }) as Permission;
const task = (id: string, state = 'asking') =>
  ({
    id,
    state,
    name: id,
    goal: '',
    endedAt: 20,
    progress: { round: 1, decision: null, conversationId: null },
  }) as unknown as Task;

const forYou = (rows: Conversation[], more: Partial<ForYouFacts> = {}) =>
  sectionsOf({
    ...{ permissions: [], tasks: [], left: {}, seen: { all: 10, each: {} } },
    known: new Map(rows.map((each) => [each.id, each])),
    ...more,
  });
const ids = (rows: readonly Conversation[]) => rows.map(({ id }) => id);

describe('the sections of “For you”', () => {
  test('a conversation is in one of them', () => {
    const rows = [
      row('asks', { state: 'asks', openPermissions: 1 }),
      row('lost', { state: 'unrestored' }),
      row('runs', { state: 'running' }),
      row('waits', { state: 'queued' }),
      row('failed', { state: 'failed', updatedAt: 12 }),
      row('rests'),
    ];
    const { needs, running, later, answered, resting } = forYou(rows, { permissions: [permission('p', 'asks')] });
    expect(needs.map(({ kind }) => kind)).toEqual(['questions', 'unrestored']);
    expect([ids(running), ids(later), ids(answered), ids(resting)]).toEqual([
      ['runs'],
      ['waits'],
      ['failed'],
      ['rests'],
    ]);
  });

  test('a stranded conversation needs attention while it has an open turn, and is listed once if it also asks', () => {
    const stranded = { reason: 'other_home', message: 'It runs only there.', hint: 'Move it.' } as const;
    const rows = [
      row('rests', { stranded }),
      row('waits', { stranded, open: 1, state: 'queued' }),
      row('asks', { stranded, open: 1, state: 'asks' }),
    ];
    const now = forYou(rows, { permissions: [permission('p', 'asks')] });
    expect(now.needs.map(({ kind }) => kind)).toEqual(['questions', 'stranded']);
    expect([ids(now.later), ids(now.resting)]).toEqual([[], ['rests']]);
    expect(noticesOf(forYou([]), now).map(({ title, body }) => `${title}: ${body}`)).toContain(
      'waits is stranded: It runs only there.',
    );
  });

  test('a question answered elsewhere, a task that continues and a dismissed restore need no attention', () => {
    const { needs, running, resting } = forYou([row('asks', { state: 'asks' }), row('lost', { state: 'unrestored' })], {
      permissions: [permission('p', 'asks', 'answered'), permission('q', 'gone', 'withdrawn')],
      tasks: [task('t', 'running')],
      left: { lost: 5 },
    });
    expect(needs).toEqual([]);
    expect([ids(running), ids(resting)]).toEqual([['asks'], ['lost']]);
  });

  test('a dismissed restore is listed again after another event', () => {
    expect(forYou([row('lost', { state: 'unrestored', lastSeq: 9 })], { left: { lost: 5 } }).needs).toHaveLength(1);
  });

  test('questions are listed by conversation, also by one that is not loaded yet', () => {
    const permissions = [permission('p', 'a'), permission('q', 'a'), permission('r', 'b')];
    const { needs } = forYou([row('a', { state: 'asks' })], { permissions, tasks: [task('t')] });
    expect(needs.map(({ id }) => id)).toEqual(['a', 'b', 't']);
    expect(needs[0]).toMatchObject({ permissions: [{ id: 'p' }, { id: 'q' }], conversation: { id: 'a' } });
  });

  test('a task that gave up needs somebody until it is dismissed or its conversation was opened; its conversation is not listed', () => {
    const stuck = { ...task('t', 'failed'), progress: { round: 2, conversationId: 'c' } } as Task;
    const rows = [row('c', { updatedAt: 20 })];
    const kinds = (more: Partial<ForYouFacts> = {}) => {
      const { needs, answered } = forYou(rows, { tasks: [stuck], ...more });
      return [needs.map(({ kind }) => kind), ids(answered)];
    };
    expect(kinds()).toEqual([['task'], []]);
    expect(kinds({ left: { t: 1 } })).toEqual([['task'], []]); // it was tried again since
    expect(kinds({ left: { t: 2 } })[0]).toEqual([]);
    expect(kinds({ seen: { all: 10, each: { c: 20 } } })).toEqual([[], []]);
    expect(kinds({ seen: null })[0]).toEqual([]);
  });

  test('open tasks are listed, and those that have passed until they were seen', () => {
    const tasks = [task('runs', 'running'), task('waits', 'waiting'), task('passed', 'done'), task('off', 'cancelled')];
    expect(forYou([], { tasks }).tasks.map(({ id }) => id)).toEqual(['runs', 'waits', 'passed']);
    expect(forYou([], { tasks, left: { passed: 1 } }).tasks.map(({ id }) => id)).toEqual(['runs', 'waits']);
    expect(
      noticesOf(forYou([], { tasks: [task('passed', 'running')] }), forYou([], { tasks })).map(({ title }) => title),
    ).toEqual(['Task passed is done']);
  });

  test('on the first visit nothing is listed as answered', () => {
    expect(forYou([row('a', { updatedAt: 99 })], { seen: null }).answered).toEqual([]);
  });

  test('a new conversation without turns is in none; one whose first turn failed is', () => {
    const rows = [row('new', { historyCount: 0 }), row('failed', { historyCount: 0, state: 'failed', updatedAt: 20 })];
    expect(forYou(rows)).toMatchObject({ resting: [], answered: [{ id: 'failed' }] });
  });

  test('the title begins with the count', () => {
    expect([titleOf(0, null), titleOf(2, null), titleOf(1, 'Deploy')]).toEqual([
      'Throughline',
      '(2) Throughline',
      '(1) Deploy · Throughline',
    ]);
  });
});

describe('what was seen', () => {
  test('is kept for each, and for all up to a time', () => {
    const seen = withSeen({ all: 10, each: { old: 9 } }, { id: 'a', updatedAt: 12 });
    expect(seen).toEqual({ all: 10, each: { a: 12 } });
    expect([isNew(seen, row('a', { updatedAt: 12 })), isNew(seen, row('a', { updatedAt: 13 }))]).toEqual([false, true]);
    expect(firstSeen([row('a', { updatedAt: 7 }), row('b')])).toEqual({ all: 10, each: {} });
  });

  test('is limited in size, and drops the oldest', () => {
    let seen = firstSeen([]);
    for (let n = 1; n <= 600; n += 1) seen = withSeen(seen, { id: `c${n}`, updatedAt: n });
    expect(Object.keys(seen.each)).toHaveLength(500);
    expect(seen.each.c101).toBe(101);
  });

  test.each([null, '', '{', '[]', '"x"', '{"all":"x","each":{}}', '{"all":1,"each":null}'])(
    '%j is not ours',
    (stored) => {
      expect(parseSeen(stored)).toBeNull();
    },
  );
});

describe('notifications', () => {
  test('are shown once for what needs a person, and for what has ended', () => {
    const before = forYou([row('a', { state: 'running' }), row('b', { state: 'running' })]);
    const permissions = [permission('p', 'b')];
    const now = forYou([row('a', { state: 'failed', updatedAt: 20 }), row('b', { state: 'asks' })], { permissions });
    expect(noticesOf(before, now).map(({ title }) => title)).toEqual(['b asks you', 'a failed']);
    expect(noticesOf(before, now).map(({ plain }) => plain)).toEqual(['An agent asks you', 'A conversation failed']);
    expect(noticesOf(now, now)).toEqual([]);
    expect(noticesOf(forYou([]), forYou([row('imported')]))).toEqual([]);
  });
});
