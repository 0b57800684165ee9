import { expect, test } from 'vitest';
import { worked } from '../../../../test/values/worked.ts';
import { newEditor, withText } from './input/editor.ts';
import { lineCells } from './text/cells.ts';
import { view } from './view.ts';

const NOTHING = { live: [], activity: null, agent: null, queued: [], unsent: [], question: null, moreQuestions: 0 };

test.each([
  ['plain', 'abc', 3],
  ['wide', '日本', 4],
  ['a tab is one cell', 'a\tb', 3],
  ['an invisible character is shown as its code point', 'a\u202eb', 10],
  ['a letter with its marks', 'e\u0301', 1],
])('in the input, %s: the cursor stands where the text ends', (_, text, column) => {
  const editor = withText(newEditor([]), text);
  const rest = { selected: null, hint: null, trouble: null, now: 0 };
  const { lines, cursor } = view({ ...NOTHING, ...rest, editor }, 40, 10);
  expect(cursor.column).toBe(2 + column);
  expect(lineCells(lines.at(-1) ?? [])).toBe(2 + column);
});

test('a question shows characters that forge a command, and says below it what they hide, however long it is', () => {
  const rest = { selected: null, hint: null, trouble: null, now: 0, editor: newEditor([]) };
  const title = `echo ok # \u202e; rm -rf ~ #${'\nls'.repeat(20)}`;
  const question = { permissionId: 'p1', title, toolCall: null, options: [] };
  const { lines } = view({ ...NOTHING, ...rest, question }, 120, 40);
  const text = lines.map((line) => line.map((one) => one.text).join('')).join('\n');
  expect(text).toContain('? The agent asks: echo ok # [U+202E · turns text round]; rm -rf ~ #');
  expect(text).toContain('  ! A character here is not what it looks like: U+202E');
});

test('of a very long pasted text, the lines around the cursor are shown, without delay', () => {
  const text = Array.from({ length: 20_000 }, (_, n) => `line ${n} 日本`).join('\n');
  const rest = { selected: null, hint: null, trouble: null, now: 0 };
  let took = 0;
  const shown = (at: number) => {
    const { value, ms } = worked(() => view({ ...NOTHING, ...rest, editor: { ...newEditor([]), text, at } }, 40, 24));
    const { lines, cursor } = value;
    took += ms;
    return [lines.map((line) => line.map((one) => one.text).join('')), cursor.row] as const;
  };
  const [end, last] = shown(text.length);
  expect([end.at(-10), end.at(-1), last]).toEqual(['  line 19990 日本', '  line 19999 日本', end.length - 1]);
  const [start, first] = shown(0);
  expect(start.slice(first, first + 2)).toEqual(['› line 0 日本', '  line 1 日本']);
  const [middle, row] = shown(text.indexOf('line 777 '));
  expect(middle[row]).toBe('  line 777 日本');
  expect(took).toBeLessThan(1_000);
});
