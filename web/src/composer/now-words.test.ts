import type { RecordPart, Turn } from 'throughline/client';
import { expect, test } from 'vitest';
import { nowWords } from './now-words.ts';

const tool = (fields: object): RecordPart => ({
  ...{ type: 'tool', id: 't', name: 'Bash', kind: 'execute', target: 'npm test', input: null, output: null },
  ...{ status: 'unknown', ...fields },
});
const now = (parts: readonly RecordPart[], turn: Partial<Turn> = {}) => {
  const running = { state: 'running', stranded: null, delayed: null, cancelRequested: false, sent: { at: 1 } };
  return nowWords({ turn: { ...running, ...turn } as Turn, parts, restoring: null });
};

test.each([
  ['a command', [tool({})], { words: 'Runs', target: 'npm test' }],
  ['another tool', [tool({ kind: 'read', name: 'Read', target: 'a.ts' })], { words: 'Read', target: 'a.ts' }],
  ['a tool without a target', [tool({ target: null })], { words: 'Bash', target: null }],
  ['after a tool', [tool({ status: 'completed' })], { words: 'Working', target: null }],
  ['an answer', [{ type: 'text', text: 'Hi' }], { words: 'Writing', target: null }],
  ['a thought', [{ type: 'thought', text: 'Hm' }], { words: 'Thinking', target: null }],
] as [string, RecordPart[], object][])('%s', (_name, parts, expected) => expect(now(parts)).toEqual(expected));

test('a turn that is being stopped says so, whatever it does', () => {
  expect(now([tool({})], { cancelRequested: true })).toEqual({ words: 'Stopping', target: null });
});
