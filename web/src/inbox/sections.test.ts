import type { Conversation, Permission, Task } from 'throughline/client';
import { describe, expect, test } from 'vitest';
import { firstSeen, isNew, parseSeen, withSeen } from '../data/seen.ts';
import { noticesOf } from './notify.ts';
import { type InboxFacts, inboxOf, titleOf } from './sections.ts';

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
  ({ id, state, name: id, goal: '', progress: { round: 1, decision: null } }) as unknown as Task;

const inbox = (rows: Conversation[], more: Partial<InboxFacts> = {}) =>
  inboxOf({
    ...{ permissions: [], tasks: [], left: {}, seen: { all: 10, each: {} } },
    known: new Map(rows.map((each) => [each.id, each])),
    ...more,
  });
const ids = (rows: readonly Conversation[]) => rows.map(({ id }) => id);

describe('the sections of the inbox', () => {
  test('a conversation is in one of them', () => {
    const rows = [
      row('asks', { state: 'asks', openPermissions: 1 }),
      row('lost', { state: 'unrestored' }),
      row('runs', { state: 'running' }),
      row('waits', { state: 'queued' }),
      row('failed', { state: 'failed', updatedAt: 12 }),
      row('rests'),
    ];
    const { needs, running, changed, resting } = inbox(rows, { permissions: [permission('p', 'asks')] });
    expect(needs.map(({ kind }) => kind)).toEqual(['permission', 'unrestored']);
    expect([ids(running), ids(changed), ids(resting)]).toEqual([['runs', 'waits'], ['failed'], ['rests']]);
  });

  test('a stranded conversation needs attention while it has an open turn, and is listed once if it also asks', () => {
    const stranded = { reason: 'other_home', message: 'It runs only there.', hint: 'Move it.' } as const;
    const rows = [
      row('rests', { stranded }),
      row('waits', { stranded, open: 1, state: 'queued' }),
      row('asks', { stranded, open: 1, state: 'asks' }),
    ];
    const now = inbox(rows, { permissions: [permission('p', 'asks')] });
    expect(now.needs.map(({ kind }) => kind)).toEqual(['permission', 'stranded']);
    expect([ids(now.running), ids(now.resting)]).toEqual([[], ['rests']]);
    expect(noticesOf(inbox([]), now).map(({ title, body }) => `${title}: ${body}`)).toContain(
      'waits is stranded: It runs only there.',
    );
  });

  test('a question answered elsewhere, a task that continues and a dismissed restore need no attention', () => {
    const { needs, running, resting } = inbox([row('asks', { state: 'asks' }), row('lost', { state: 'unrestored' })], {
      permissions: [permission('p', 'asks', 'answered'), permission('q', 'gone', 'withdrawn')],
      tasks: [task('t', 'running')],
      left: { lost: 5 },
    });
    expect(needs).toEqual([]);
    expect([ids(running), ids(resting)]).toEqual([['asks'], ['lost']]);
  });

  test('a dismissed restore is listed again after another event', () => {
    expect(inbox([row('lost', { state: 'unrestored', lastSeq: 9 })], { left: { lost: 5 } }).needs).toHaveLength(1);
  });

  test('every question is listed, also several of one conversation, and of one that is not loaded yet', () => {
    const permissions = [permission('p', 'a'), permission('q', 'a'), permission('r', 'b')];
    expect(inbox([row('a', { state: 'asks' })], { permissions, tasks: [task('t')] }).needs).toHaveLength(4);
  });

  test('on the first visit nothing is listed as changed', () => {
    expect(inbox([row('a', { updatedAt: 99 })], { seen: null }).changed).toEqual([]);
  });

  test('a new conversation without turns is in none; one whose first turn failed is', () => {
    const rows = [row('new', { historyCount: 0 }), row('failed', { historyCount: 0, state: 'failed', updatedAt: 20 })];
    expect(inbox(rows)).toMatchObject({ resting: [], changed: [{ id: 'failed' }] });
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
    const before = inbox([row('a', { state: 'running' }), row('b', { state: 'running' })]);
    const permissions = [permission('p', 'b')];
    const now = inbox([row('a', { state: 'failed', updatedAt: 20 }), row('b', { state: 'asks' })], { permissions });
    expect(noticesOf(before, now).map(({ title }) => title)).toEqual(['b asks you', 'a failed']);
    expect(noticesOf(now, now)).toEqual([]);
    expect(noticesOf(inbox([]), inbox([row('imported')]))).toEqual([]);
  });
});
