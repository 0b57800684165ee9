import { expect, test } from 'vitest';
import { keyMeaning } from './keys.ts';

const KEY = { key: 'Enter', shift: false, alt: false, mod: false, repeats: false, composes: false };
const FIELD = { isEmpty: false, isTouch: false, suggests: false };

test.each([
  ['Enter sends', {}, {}, 'send'],
  ['Enter of an input method does not', { composes: true }, {}, null],
  ['Enter of an input method does not choose an open suggestion', { composes: true }, { suggests: true }, null],
  ['a held Enter sends once', { repeats: true }, {}, 'nothing'],
  ['Shift+Enter is a new line', { shift: true }, {}, null],
  ['on a screen keyboard Enter is a new line', {}, { isTouch: true }, null],
  ['on a touch device Mod+Enter of a keyboard sends', { mod: true }, { isTouch: true }, 'send-now'],
  ['Mod+Enter sends at once', { mod: true }, {}, 'send-now'],
  ['Mod+Enter sends at once, also while suggestions are open', { mod: true }, { suggests: true }, 'send-now'],
  ['Enter chooses a suggestion', {}, { suggests: true }, 'choose'],
  ['a held arrow moves on through suggestions', { key: 'ArrowDown', repeats: true }, { suggests: true }, 'next'],
  ['Escape closes suggestions first', { key: 'Escape' }, { suggests: true }, 'close'],
  ['Escape asks to stop', { key: 'Escape' }, {}, 'stop'],
  ['a held Escape asks once', { key: 'Escape', repeats: true }, {}, 'nothing'],
  ['ArrowUp in an empty field recalls the last prompt', { key: 'ArrowUp' }, { isEmpty: true }, 'recall'],
  ['ArrowUp in a text moves the cursor', { key: 'ArrowUp' }, {}, null],
  ['a letter has no special meaning', { key: 'a' }, { isEmpty: true }, null],
] as const)('%s', (_name, key, field, meaning) => {
  expect(keyMeaning({ ...KEY, ...key }, { ...FIELD, ...field })).toBe(meaning);
});
