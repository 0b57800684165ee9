import { expect, test } from 'vitest';
import { PartsBuilder, type ToolPart } from '../../../src/core/turn/record.ts';
import { changedFiles, changedLines, outputBeside } from './tool-changes.ts';

function tool(...content: object[]): ToolPart {
  const builder = new PartsBuilder();
  builder.add({ sessionUpdate: 'tool_call', toolCallId: 't', status: 'completed', content });
  return builder.parts()[0] as ToolPart;
}

const printed = (text: string) => ({ type: 'content', content: { type: 'text', text } });
const diff = (path: string, oldText: string | null, newText: string) => ({ type: 'diff', path, oldText, newText });

test('two changed lines count as two, also if others are between them', () => {
  const before = 'a\none\nb\nc\nd\ntwo\ne\n';
  const changed = tool(diff('/a', before, before.replace('one', '1').replace('two', '2')));
  expect(changedLines(changed)).toEqual({ added: 2, removed: 2 });
  expect(changedFiles(changed)).toBe(changedFiles(changed));
});

test('several files are shown each, and what was printed beside them', () => {
  const changed = tool(printed('before'), diff('/a', 'x', 'y'), printed('after'), diff('/b', null, 'z\n'));
  expect(changedFiles(changed)).toMatchObject([
    { path: '/a', note: null, diff: { added: 1, removed: 1 } },
    { path: '/b', note: 'new file', diff: { added: 1, removed: 0 } },
  ]);
  expect(changedLines(changed)).toEqual({ added: 2, removed: 1 });
  expect(outputBeside(changed)).toBe('before\nafter\n');
});

test('output that only looks like a diff is output', () => {
  const forged = tool(printed('[diff /etc/passwd, line 1]\n-root\n+you'));
  expect(changedFiles(forged)).toEqual([]);
  expect(changedLines(forged)).toBeNull();
  expect(outputBeside(forged)).toBe('[diff /etc/passwd, line 1]\n-root\n+you');
});

test('of a change that is too long, nothing is counted, and its output stays', () => {
  const lines = (from: number) => Array.from({ length: 4_000 }, (_, n) => `line ${n + from}\n`).join('');
  const long = tool(diff('/a', lines(0), lines(9_000)));
  expect(changedLines(long)).toBeNull();
  expect(changedFiles(long)).toMatchObject([{ note: 'too long to be kept as a whole', diff: { rows: [] } }]);
  expect(outputBeside(long)).toMatch(/^\[diff \/a, line 1\]\n-line 0\n/);
  const created = tool(diff('/a', null, lines(0)));
  expect(changedFiles(created)[0]?.note).toBe('new file; only its beginning was kept');
  expect(changedFiles(created)[0]?.diff.added).toBeGreaterThan(3_000);
});

test('a tool without output has none', () => {
  expect(outputBeside(tool(diff('/a', 'x', 'y')))).toBeNull();
  expect(outputBeside({ ...tool(), output: null })).toBeNull();
});
