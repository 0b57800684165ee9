import { expect, test } from 'vitest';
import { commandAt, commandSuggestions, fileSuggestions, matching, mentionAt } from './suggest.ts';

test.each([
  ['/', 1, ''],
  ['/rev', 4, 'rev'],
  ['/review this', 12, null],
  ['/review this', 3, 're'],
  ['a /rev', 6, null],
  ['/etc/hosts is wrong', 19, null],
])('the command in %j at %i', (text, caret, typed) => {
  expect(commandAt(text, caret)).toBe(typed);
});

test('names that begin with the typed text come first', () => {
  expect(matching(['preview', 'review', 'compact'], 'rev', (one) => one)).toEqual(['review', 'preview']);
});

test('a chosen command replaces its typed part, and keeps the text after it', () => {
  const commands = [{ name: 'review', description: 'Reviews', hint: 'what' }];
  expect(commandSuggestions(commands, '/re the diff', 3)).toEqual([
    { id: 'review', label: '/review what', about: 'Reviews', text: '/review the diff', caret: 8 },
  ]);
});

test.each([
  ['see @', 5, { typed: '', from: 5 }],
  ['see @src/in', 11, { typed: 'src/in', from: 5 }],
  ['@a b', 4, null],
  ['mail@example', 12, null],
  ['(@re', 4, { typed: 're', from: 2 }],
  ['@src/in and more', 4, { typed: 'src', from: 1 }],
])('the file in %j at %i', (text, caret, mention) => {
  expect(mentionAt(text, caret)).toEqual(mention);
});

test('a chosen file replaces its typed part; after a folder, more is suggested', () => {
  expect(fileSuggestions(['src/core/turn.ts', 'src/'], 'see @tu now', 7)).toMatchObject([
    { label: 'turn.ts', about: 'src/core/', text: 'see @src/core/turn.ts now', caret: 21, isOpen: false },
    { label: 'src/', about: '', text: 'see @src/ now', caret: 9, isOpen: true },
  ]);
  expect(fileSuggestions(['src/'], '@src/', 5)).toEqual([]); // it is typed already
  expect(fileSuggestions(['a.md'], '@', 1)).toMatchObject([{ text: '@a.md ', caret: 6 }]);
});
