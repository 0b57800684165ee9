import { expect, test } from 'vitest';
import { NEW, writtenIn } from './draft.ts';
import { sortDrafts } from './free.ts';

const DAY = 86_400_000;
const NOW = 100 * DAY;

test('old drafts of every owner are deleted; only conversations of this owner are checked, oldest first', () => {
  const drafts = new Map([
    ['fresh', { at: NOW - DAY, owner: 'ann' }],
    ['older', { at: NOW - 20 * DAY, owner: 'ann' }],
    ['bobs', { at: NOW - DAY, owner: 'bob' }],
    ['bobs-old', { at: NOW - 29 * DAY, owner: 'bob' }],
    ['old', { at: NOW - 40 * DAY, owner: 'ann' }],
    [NEW, { at: NOW - DAY, owner: 'ann' }],
  ]);
  expect(sortDrafts(drafts, 'ann', NOW)).toEqual({ old: ['old', 'bobs-old'], check: ['older', 'fresh'] });
});

test('one visit checks a limited number of conversations', () => {
  const drafts = new Map(Array.from({ length: 99 }, (_, n) => [`c${n}`, { at: NOW - n, owner: 'ann' }] as const));
  expect(sortDrafts(drafts, 'ann', NOW).check).toEqual(Array.from({ length: 20 }, (_, n) => `c${98 - n}`));
});

test.each([
  ['17 ann', { at: 17, owner: 'ann' }],
  ['17 a b\nc', { at: 17, owner: 'a b\nc' }],
  ['17', null],
  ['x ann', null],
  [null, null],
])('the note %j is read as %j', (stored, written) => expect(writtenIn(stored)).toEqual(written));
