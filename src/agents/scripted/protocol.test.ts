import { expect, test } from 'vitest';
import { parseMessage } from './protocol.ts';

test.each([
  '',
  'Warning: this is no JSON',
  '{"type":"update"',
  '42',
  'null',
  '[]',
  '{}',
  '{"type":"unheard-of"}',
  '{"type":"toString"}',
  '{"type":"update","update":"text"}',
  '{"type":"session","id":null}',
  '{"type":"ended","prompt":"p"}',
])('%j is not a message', (line) => {
  expect(parseMessage(line)).toBeNull();
});

test.each([
  { type: 'opened', id: null },
  { type: 'taken', prompt: 'p', parent: null },
  { type: 'update', update: { sessionUpdate: 'plan', entries: [] } },
  { type: 'ended', prompt: 'p', outcome: { kind: 'completed' } },
])('%j is a message', (message) => {
  expect(parseMessage(JSON.stringify(message))).toEqual(message);
});
