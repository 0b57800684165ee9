import type { RecordPart } from 'throughline/client';
import { expect, test } from 'vitest';
import type { ToolPart } from '../../../src/core/turn/record.ts';
import { hasFailedCommand, piecesOf, type Run, wordsOf } from './runs.ts';

let ids = 0;
const tool = (kind: string, fields: Partial<ToolPart> = {}): ToolPart => {
  ids += 1;
  return {
    ...{ type: 'tool', id: `t${ids}`, name: kind, kind, target: `${kind} ${ids}`, input: null, output: null },
    status: 'completed',
    ...fields,
  };
};
const times = (count: number, kind: string, fields: Partial<ToolPart> = {}) =>
  Array.from({ length: count }, () => tool(kind, fields));
const text = (words: string): RecordPart => ({ type: 'text', text: words });
const thought = (words: string): RecordPart => ({ type: 'thought', text: words });

test.each<readonly [string, readonly RecordPart[], readonly string[]]>([
  ['nothing', [], []],
  ['text alone', [text('a')], ['a']],
  ['tools between texts', [text('a'), tool('read'), tool('edit'), text('b'), tool('read')], ['a', '2', 'b', '1']],
  [
    'thoughts around tools',
    [thought('x'), tool('read'), thought('y'), tool('read'), thought('z'), text('a')],
    ['5', 'a'],
  ],
  ['a thought without a tool', [thought('x'), text('a'), thought('y')], ['x', 'a', 'y']],
])('%s is grouped', (_name, parts, expected) => {
  const pieces = piecesOf(parts);
  expect(pieces.map((piece) => (piece.kind === 'run' ? String(piece.steps.length) : piece.part.text))).toEqual(
    expected,
  );
  expect(new Set(pieces.map(({ key }) => key)).size).toBe(pieces.length);
});

test('a piece keeps its key while more parts come', () => {
  const parts = [text('a'), thought('x'), tool('read'), tool('read'), text('b')];
  const keys = parts.map((_, index) => piecesOf(parts.slice(0, index + 1)).map(({ key }) => key));
  expect(keys).toEqual([['0'], ['0', '1'], ['0', '1'], ['0', '1'], ['0', '1', '4']]);
});

const line = (steps: Run['steps'], isRunning = false) => {
  const { lead, did, failed, now, unknown } = wordsOf(steps, isRunning);
  return `${lead}${[did, failed, unknown === 0 ? '' : `${unknown} unknown`, now === null ? '' : `now ${now.kind}`].filter(Boolean).join(' | ')}`;
};

test.each<readonly [string, Run['steps'], string]>([
  [
    'looking around',
    [...times(9, 'read'), ...times(3, 'search'), ...times(2, 'execute')],
    'Looked around: 9 files read, 3 searches, 2 commands',
  ],
  ['work', [...times(5, 'execute'), ...times(4, 'edit')], '4 files changed, 5 commands'],
  ['commands alone', times(2, 'execute'), '2 commands'],
  [
    'one of each',
    ['read', 'search', 'execute', 'fetch'].map((kind) => tool(kind)),
    'Looked around: 1 file read, 1 search, 1 command, 1 page fetched',
  ],
  ['a file that was read twice', times(2, 'read', { target: 'a.ts' }), 'Looked around: 1 file read'],
  ['files without a name', times(2, 'edit', { target: null }), '2 files changed'],
  [
    'a failed command',
    [...times(2, 'read'), tool('search'), tool('execute', { status: 'failed' })],
    '2 files read, 1 search | 1 command failed',
  ],
  [
    'only failures',
    [...times(2, 'execute', { status: 'failed' }), tool('read', { status: 'failed' })],
    '1 read failed, 2 commands failed',
  ],
  ['several of one kind that failed', times(2, 'search', { status: 'failed' }), '2 searches failed'],
  [
    'an outcome that nobody knows',
    [tool('read'), tool('execute', { status: 'unknown' })],
    'Looked around: 1 file read, 1 command | 1 unknown',
  ],
  [
    'names of Claude',
    ['Bash', 'Grep', 'Write', 'Task', 'TodoWrite'].map((name) => tool('think', { name })),
    '1 file changed, 1 search, 1 command, 1 subagent, 1 plan',
  ],
  [
    'names of others',
    ['read_file', 'run_shell_command', 'apply_patch', 'mcp__x__y'].map((name) => tool('other', { name })),
    '1 file changed, 1 file read, 1 command, 1 other tool',
  ],
  ['deletions and moves', [tool('delete'), tool('move')], '2 files changed'],
])('%s in one line', (_name, steps, expected) => {
  expect(line(steps)).toBe(expected);
});

test.each<readonly [string, Run['steps'], string]>([
  [
    'while a tool is at work',
    [...times(2, 'read'), tool('execute', { status: 'unknown' })],
    '2 files read | now execute',
  ],
  ['of several, the last', [tool('read', { status: 'unknown' }), tool('search', { status: 'unknown' })], 'now search'],
  ['between two tools', times(2, 'read'), 'Looked around: 2 files read'],
])('the line says what is done now: %s', (_name, steps, expected) => {
  expect(line(steps, true)).toBe(expected);
});

test('lines and time are those of all tools', () => {
  const edit = (oldText: string, newText: string, ms: number) =>
    tool('edit', { diffs: [{ path: 'a', oldText, newText, lines: [1, 1] }], ms });
  const steps = [edit('x\n', 'y\nz\n', 1_000), edit('', 'x\n', 500), tool('read')];
  expect(wordsOf(steps, false)).toMatchObject({ lines: { added: 3, removed: 1 }, ms: 1_500 });
  expect(wordsOf([tool('read')], false)).toMatchObject({ lines: null, ms: null });
});

test('a failed command opens its run, another failure does not', () => {
  expect(hasFailedCommand([tool('execute', { status: 'failed' })])).toBe(true);
  expect(hasFailedCommand([tool('read', { status: 'failed' }), tool('execute')])).toBe(false);
});
