import type { Conversation, Permission, Task } from 'throughline/client';
import { expect, test } from 'vitest';
import type { Need } from '../for-you/sections.ts';
import { itemsOf, type RailFacts } from './items.ts';

const API = { path: '/src/api', name: 'api' };
const row = (id: string, more: Partial<Conversation> = {}) =>
  ({
    ...{
      id,
      key: null,
      title: id,
      state: 'idle',
      project: API,
      open: 0,
      stranded: null,
      delayed: null,
      parent: null,
    },
    ...more,
  }) as Conversation;

const items = (rows: Conversation[], more: Partial<RailFacts> = {}) =>
  itemsOf({
    ...{ rows, known: new Map(rows.map((each) => [each.id, each])), needs: [], tasks: [], showsNeeds: true },
    ...{ folded: new Set<string>(), isUnread: () => false },
    ...more,
  }).map((item) =>
    item.kind === 'heading'
      ? `# ${item.project?.name ?? 'Needs you'}`
      : [item.glyph ?? '', item.title, item.branch, item.news].filter((part) => part !== null).join(' | '),
  );

const asks = (conversation: Conversation): Need => ({
  ...{ kind: 'questions', id: conversation.id, conversation },
  permissions: [
    {
      id: 'p',
      askedAt: 1,
      title: 'Run it',
      toolCall: { rawInput: { command: 'npm run docs' } },
    } as unknown as Permission,
  ],
});

test('what was read is silent, and news have a second line', () => {
  const rows = [
    row('works', { state: 'running', open: 1 }),
    row('new'),
    row('read'),
    row('broke', { state: 'failed' }),
    row('waits', { state: 'queued', open: 1, delayed: { message: 'No slot is free.' } as Conversation['delayed'] }),
  ];
  expect(items(rows, { isUnread: ({ id }) => id === 'new' })).toEqual([
    '# api',
    'working | works',
    'new | new',
    ' | read',
    ' | broke',
    'waiting | waits | No slot is free.',
  ]);
  expect(items([row('broke', { state: 'failed' })], { isUnread: () => true })).toEqual(['# api', 'failed | broke']);
});

test('what needs somebody is listed once, with what it asks', () => {
  const asking = row('asking', { state: 'asks', open: 1 });
  const rows = [asking, row('other')];
  expect(items(rows, { needs: [asks(asking)] })).toEqual([
    '# Needs you',
    'needs | asking | api · asks to run npm run docs',
    '# api',
    ' | other',
  ]);
  expect(items(rows, { needs: [asks(asking)], showsNeeds: false })).toEqual(['# api', ' | other']);
});

test('a task that gave up stands for its conversation, and one that works says its try', () => {
  const task = (id: string, state: string, conversationId: string) =>
    ({
      ...{ id, state, name: id, goal: '', cwd: '/src/api', maxIterations: 5, endedAt: 3 },
      progress: {
        conversationId,
        iteration: 3,
        lastGate: { verdict: 'fail', summary: '2 tests fail' },
        decision: null,
      },
    }) as unknown as Task;
  const needs: Need[] = [{ kind: 'task', id: 'stuck', task: task('stuck', 'failed', 'a') }];
  const rows = [row('a'), row('b', { state: 'running', open: 1 })];
  expect(items(rows, { needs, tasks: [task('moving', 'running', 'b')] })).toEqual([
    '# Needs you',
    'failed | stuck | api · gave up after try 3',
    '# api',
    'working | b | Task · try 3 of 5 · 2 tests fail',
  ]);
});

test('a folded project is its heading, and without any project there is none', () => {
  const rows = [row('a'), row('b', { project: null })];
  expect(items(rows, { folded: new Set(['/src/api']) })).toEqual(['# api', '# Without a directory', ' | b']);
  expect(items([row('b', { project: null })])).toEqual([' | b']);
});

test('a fork with the title of its parent says where it was branched', () => {
  const parent = { conversationId: 'a', n: 31 };
  const fork = row('f', { title: 'a', parent });
  expect(items([row('a'), fork, row('g', { title: 'Another way', parent })])).toEqual([
    '# api',
    ' | a',
    ' | a | branched after turn 31',
    ' | Another way',
  ]);
});

test('what was put away is not listed, and what is pinned is, however old', () => {
  const old = row('old', { pinned: true });
  const rows = [row('a'), row('gone', { putAway: true })];
  expect(items(rows, { known: new Map([...rows, old].map((each) => [each.id, each])) })).toEqual([
    '# api',
    ' | old',
    ' | a',
  ]);
  const asking = row('gone', { putAway: true, state: 'asks', open: 1 });
  expect(items([asking], { needs: [asks(asking)] })).toHaveLength(2);
});
