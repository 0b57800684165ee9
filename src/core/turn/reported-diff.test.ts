import { expect, test } from 'vitest';
import { diffContent, reportedDiff } from './reported-diff.ts';

test.each([
  [
    { type: 'diff', path: '/a', oldText: 'x', newText: 'y' },
    { path: '/a', oldText: 'x', newText: 'y', lines: [1, 1] },
  ],
  [
    { type: 'diff', path: 7, newText: 'y' },
    { path: '', oldText: null, newText: 'y', lines: [1, 1] },
  ],
  [{ type: 'diff', newText: 'y', _meta: { 'throughline/lines': [0, 'x'] } }, { lines: null }],
  [{ type: 'content', content: { type: 'text', text: '[diff a, line 1]' } }, null],
  [{ type: 'diff', path: '/a' }, null],
  ['diff', null],
])('a change of a file in the content of a tool: %j', (content, expected) => {
  if (expected === null) expect(reportedDiff(content)).toBeNull();
  else expect(reportedDiff(content)).toMatchObject(expected);
});

test.each([[[28, 29]], [null]] as const)('what is written is read again, with the lines %j', (lines) => {
  const diff = { path: '/a', oldText: null, newText: 'y', lines };
  expect(reportedDiff(diffContent(diff))).toEqual(diff);
});
