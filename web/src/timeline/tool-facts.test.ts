import { expect, test } from 'vitest';
import type { ToolPart } from '../../../src/core/turn/record.ts';
import { factOf } from './tool-facts.ts';

const tool = (fields: Partial<ToolPart>): ToolPart => ({
  ...{ type: 'tool', id: 't', name: 'x', kind: 'read', target: null, input: null, output: null, status: 'completed' },
  ...fields,
});

test.each<readonly [string, Partial<ToolPart>, string | null]>([
  ['a whole file', { output: '     1→a\n     2→b\n     3→' }, 'all 3 lines'],
  ['a part of it', { output: '    40→a\n    41→b', input: { offset: 40, limit: 2 } }, 'lines 40–41'],
  ['its first lines', { output: ' 1\ta\n 2\tb', input: { offset: 1, limit: 2 } }, 'lines 1–2'],
  ['as it was asked for', { input: { line: 11, limit: 10 } }, 'lines 11–20'],
  ['to the end', { input: { offset: 11 } }, 'from line 11'],
  ['an output without numbers', { output: 'a\nb' }, null],
  ['an output that was shortened', { output: ' 1→a\n[… 20 characters left out …]\n 9→b' }, null],
  ['hits', { kind: 'search', output: 'a.ts:1:x\na.ts:2:x\nb.ts:7:x' }, '3 hits in 2 files'],
  ['one hit', { kind: 'search', output: 'a.ts:1:x\n' }, '1 hit in 1 file'],
  ['files', { kind: 'search', output: 'Found 4 files\na\nb' }, '4 files'],
  ['no hit', { kind: 'search', output: 'No matches found' }, 'no hits'],
  ['other words', { kind: 'search', output: 'a.ts:1:x\nand so on' }, null],
  ['a failed read', { output: ' 1→a', status: 'failed' }, null],
])('%s: what a row says', (_name, fields, expected) => {
  expect(factOf(tool(fields)).words).toBe(expected);
});

test.each<readonly [string, Partial<ToolPart>, number | null]>([
  ['of Claude', { output: 'Exit code 127\nnot found' }, 127],
  ['of an agent that reports it alone', { output: '{"exit_code":2}' }, 2],
  ['not said', { output: 'not found' }, null],
  ['of a command that only prints such words', { output: 'Exit code 1', status: 'completed' }, null],
])('the exit code %s', (_name, fields, expected) => {
  expect(factOf(tool({ kind: 'execute', status: 'failed', ...fields })).exit).toBe(expected);
});
