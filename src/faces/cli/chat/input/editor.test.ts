import { expect, test } from 'vitest';
import { type Editor, edit, newEditor, remember } from './editor.ts';
import type { Key, KeyName } from './keys.ts';

/** Keys by name; anything else is typed. The cursor is shown as `|`. */
const NAMES: readonly string[] = [
  ...[
    'enter',
    'newline',
    'backspace',
    'delete',
    'left',
    'right',
    'up',
    'down',
    'home',
    'end',
    'word-left',
    'word-right',
  ],
  ...['delete-word', 'delete-word-right', 'kill-start', 'kill-end', 'yank', 'eof', 'escape'],
];
const key = (word: string): Key => (NAMES.includes(word) ? { name: word as KeyName } : { name: 'text', text: word });

function after(keys: readonly string[], start: Editor = newEditor([])) {
  const submitted: string[] = [];
  let editor = start;
  for (const one of keys) {
    const edited = edit(editor, key(one));
    editor = edited.editor;
    if (edited.submitted !== undefined) submitted.push(edited.submitted);
  }
  return { editor, submitted, shown: `${editor.text.slice(0, editor.at)}|${editor.text.slice(editor.at)}` };
}

test.each<[string[], string]>([
  [['abc', 'left', 'X'], 'abX|c'],
  [['abc', 'home', 'X', 'end', 'Y'], 'XabcY|'],
  [['one two', 'word-left', 'X'], 'one X|two'],
  [['one two', 'home', 'word-right', 'X'], 'oneX| two'],
  [['one two', 'delete-word'], 'one |'],
  [['one two', 'home', 'delete-word-right'], '| two'],
  [['abc', 'left', 'kill-end'], 'ab|'],
  [['abc', 'left', 'kill-start'], '|c'],
  [['abc', 'kill-start', 'yank', 'yank'], 'abcabc|'],
  [['abc', 'left', 'eof'], 'ab|'],
  [['a👩‍💻', 'backspace'], 'a|'],
  [['a👩‍💻b', 'left', 'left', 'X'], 'aX|👩‍💻b'],
  [['日本', 'left', 'delete'], '日|'],
  [['e\u0301', 'backspace'], '|'],
  [['a\\', 'enter', 'b'], 'a\nb|'],
  [['a', 'newline', 'b', 'up', 'X'], 'aX|\nb'],
  [['long line', 'newline', 'b', 'up', 'end', 'down'], 'long line\nb|'],
  [['ab', 'newline', 'cd', 'home', 'backspace'], 'ab|cd'],
  [['ab', 'newline', 'cd', 'up', 'end', 'kill-end'], 'ab|cd'],
  [['  ', 'enter'], '|'],
  [['left', 'backspace', 'delete', 'right', 'escape'], '|'],
])('%j gives %j', (keys, expected) => {
  expect(after(keys).shown).toBe(expected);
});

test('Enter submits the whole text, and a paste of several lines is one', () => {
  const pasted = edit(newEditor([]), { name: 'paste', text: 'one\ntwo' }).editor;
  expect(after(['enter'], pasted)).toMatchObject({ submitted: ['one\ntwo'], shown: '|' });
  expect(after(['hello', 'home', 'enter']).submitted).toEqual(['hello']);
});

test('the arrows go through earlier prompts, and back to what was being written', () => {
  const editor = newEditor(['first', 'second\nof two lines']);
  expect(after(['draft', 'up'], editor).shown).toBe('second\nof two lines|');
  expect(after(['draft', 'up', 'up', 'up'], editor).shown).toBe('first|');
  expect(after(['draft', 'up', 'up', 'up', 'up'], editor).shown).toBe('first|');
  expect(after(['draft', 'up', 'down'], editor).shown).toBe('draft|');
  expect(after(['down'], editor).shown).toBe('|');
  expect(after(['up', 'up', 'up', 'enter'], editor).submitted).toEqual(['first']);
});

test('the same prompt twice is kept once', () => {
  expect(remember(remember(newEditor(['a']), 'b'), 'b').history).toEqual(['a', 'b']);
});
