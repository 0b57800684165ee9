import { expect, test } from 'vitest';
import { pressedKeys } from './keyboard.ts';

const NONE = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

test.each([
  ['a letter', { key: 'j' }, false, 'j'],
  ['Shift is part of the character', { key: '?', shiftKey: true }, false, '?'],
  ['control', { key: 'k', ctrlKey: true }, false, 'Mod+K'],
  ['command on a Mac', { key: 'k', metaKey: true }, true, 'Mod+K'],
  ['control on a Mac is no bare letter', { key: 'j', ctrlKey: true }, true, 'Other+j'],
  ['Mod with Shift is another key', { key: 'K', ctrlKey: true, shiftKey: true }, false, 'Mod+Shift+K'],
])('%s', (_, pressed, apple, keys) => {
  expect(pressedKeys({ ...NONE, ...pressed }, apple)).toBe(keys);
});
