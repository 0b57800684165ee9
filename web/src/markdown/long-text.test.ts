import { expect, test } from 'vitest';
import { folded, piecesOf, withShortLines } from './long-text.ts';

test('a very long line is cut, and nothing else', () => {
  const long = 'word '.repeat(200_000);
  const { text, left } = withShortLines(`# Title\n\n${long}\n\nEnd.`);
  expect(text.startsWith('# Title\n\nword word')).toBe(true);
  expect(text.endsWith('…\n\nEnd.')).toBe(true);
  expect(left).toBe(992_000);
  expect(text.length).toBeLessThan(10_000);
});

test('many lines, and lines of code, are not cut', () => {
  const many = 'A line of words.\n'.repeat(20_000);
  expect(withShortLines(many)).toEqual({ text: many, left: 0 });
  const code = `\`\`\`\n${'x'.repeat(1_000_000)}\n\`\`\`\nEnd.`;
  expect(withShortLines(code)).toEqual({ text: code, left: 0 });
});

test.each([
  ['200 lines', 'a\n'.repeat(199), null],
  ['5,000 lines', 'a line\n'.repeat(4_999), '4,980 more lines'],
  ['a line of 1 MB', 'x'.repeat(1_000_000), '996,000 more characters'],
  ['a few long lines', `${'x'.repeat(50_000)}\n`.repeat(3), '146,003 more characters'],
])('of code with %s the rest is folded', (_name, code, rest) => {
  expect(folded(code)?.rest ?? null).toBe(rest);
});

test('pieces together are the text, and stay while it grows', () => {
  const text = 'some words '.repeat(2_000);
  const pieces = piecesOf(text, ' ');
  expect(pieces.join('')).toBe(text);
  expect(pieces.length).toBeGreaterThan(4);
  expect(piecesOf(`${text}more`, ' ').slice(0, pieces.length - 1)).toEqual(pieces.slice(0, -1));
});
