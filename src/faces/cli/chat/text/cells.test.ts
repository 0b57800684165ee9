import { expect, test } from 'vitest';
import { cells } from '../../terminal-text.ts';
import { clipped, type Line, lineCells, span, wrap } from './cells.ts';

const text = (line: Line) => line.map((one) => one.text).join('');

test.each([
  ['plain', 5],
  ['', 0],
  ['日本語', 6],
  ['한글', 4],
  ['ｆｕｌｌ', 8],
  ['é', 1],
  ['e\u0301', 1],
  ['👍', 2],
  ['👩‍💻', 2],
  ['🇩🇪', 2],
  ['⚠️', 2],
  ['⚠', 1],
  ['─│•', 3],
])('%s takes %i cells', (given, expected) => {
  expect(cells(given)).toBe(expected);
});

test.each([
  ['one two three', 8, ['one two', 'three']],
  ['abcdefghij', 4, ['abcd', 'efgh', 'ij']],
  ['日本語の文', 4, ['日本', '語の', '文']],
  ['a 日本語', 5, ['a 日', '本語']],
  ['one\ntwo', 20, ['one', 'two']],
  ['ends with spaces   ', 8, ['ends', 'with', 'spaces']],
  ['👩‍💻👩‍💻👩‍💻', 4, ['👩‍💻👩‍💻', '👩‍💻']],
  ['', 5, ['']],
])('%j in %i cells breaks into %j', (given, width, expected) => {
  expect(wrap([span(given)], width).map(text)).toEqual(expected);
});

test('styles stay with their words, and further lines are indented', () => {
  const lines = wrap([span('one '), span('two three', 'bold')], 9, { first: [span('- ')], rest: [span('  ')] });
  expect(lines.map(text)).toEqual(['- one two', '  three']);
  expect(lines[1]?.at(-1)).toEqual(span('three', 'bold'));
});

test('a clipped line says that there is more, and cuts no character in two', () => {
  const line = clipped([span('日本語の文', 'dim')], 6);
  expect(text(line)).toBe('日本…');
  expect(lineCells(line)).toBeLessThanOrEqual(6);
  expect(text(clipped([span('fits')], 4))).toBe('fits');
});

test('letters with far too many combining marks do not fill the screen', () => {
  expect(text(wrap([span(`a${'\u0301'.repeat(1000)}b`)], 10)[0] ?? [])).toBe('\ufffdb');
});
