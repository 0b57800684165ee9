import { expect, test } from 'vitest';
import { reportedDiff } from '../../../core/turn/reported-diff.ts';
import { askedDiffs, changedDiffs } from './diffs.ts';

const read = (content: readonly object[]) => content.map(reportedDiff);
const FILE = { file_path: '/a.ts' };

test.each<[string, string, unknown, unknown[]]>([
  [
    'an edit',
    'Edit',
    { ...FILE, old_string: 'a', new_string: 'b', replace_all: true },
    [{ oldText: 'a', newText: 'b', lines: null }],
  ],
  [
    'several edits',
    'MultiEdit',
    {
      ...FILE,
      edits: [
        { old_string: 'a', new_string: 'b' },
        { old_string: 'c', new_string: '' },
      ],
    },
    [
      { oldText: 'a', newText: 'b' },
      { oldText: 'c', newText: '' },
    ],
  ],
  ['a file', 'Write', { ...FILE, content: 'x\n' }, [{ oldText: null, newText: 'x\n', lines: null }]],
  ['another tool', 'Bash', { ...FILE, old_string: 'a', new_string: 'b' }, []],
  ['an edit of an unknown shape', 'MultiEdit', { ...FILE, edits: [{ old_string: 'a' }] }, []],
  ['no file', 'Edit', { old_string: 'a', new_string: 'b' }, []],
  ['nothing', 'Write', null, []],
])('what Claude wants to write: %s', (_, name, input, expected) => {
  const found = read(askedDiffs(name, input));
  expect(found).toMatchObject(expected);
  expect(found.every((diff) => diff?.path === '/a.ts')).toBe(true);
});

const HUNK = {
  oldStart: 28,
  oldLines: 2,
  newStart: 29,
  newLines: 2,
  lines: [' same', '-old', '+new', '\\ No newline at end of file'],
};

test.each<[string, unknown, unknown[]]>([
  [
    'each place of a patch',
    { filePath: '/a.ts', originalFile: '…', structuredPatch: [HUNK, { ...HUNK, oldStart: 90, newStart: 91 }] },
    [{ oldText: 'same\nold\n', newText: 'same\nnew\n', lines: [28, 29] }, { lines: [90, 91] }],
  ],
  [
    'a new file',
    { type: 'create', filePath: '/a.ts', content: 'x\n', structuredPatch: [], originalFile: null },
    [{ oldText: null, newText: 'x\n', lines: [1, 1] }],
  ],
  [
    'a file that was empty',
    { filePath: '/a.ts', structuredPatch: [{ oldStart: 0, newStart: 1, lines: ['+x'] }] },
    [{ oldText: '', lines: [1, 1] }],
  ],
  [
    'a file that was written again as it was',
    { type: 'update', filePath: '/a.ts', content: 'x', structuredPatch: [], originalFile: 'x' },
    [],
  ],
  ['a patch of an unknown shape', { filePath: '/a.ts', structuredPatch: [{ lines: [7] }] }, []],
  [
    'a patch that is too long',
    { filePath: '/a.ts', structuredPatch: [{ ...HUNK, lines: ['+x'.repeat(200_000)] }] },
    [],
  ],
  ['what another tool notes', { stdout: 'x', stderr: '' }, []],
  ['a text', 'Error: no such file', []],
])('what Claude has changed: %s', (_, result, expected) => {
  expect(read(changedDiffs(result))).toMatchObject(expected);
});
