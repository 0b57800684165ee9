import { expect, test } from 'vitest';
import {
  chunkText,
  type ModelRetry,
  modelRetryIn,
  refusesLogin,
  retryText,
  retryUpdate,
  type Update,
} from './update.ts';

test('only a chunk of text has text', () => {
  const updates: Update[] = [
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'a' } },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '' } },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'image' } },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text' } },
    { sessionUpdate: 'tool_call', toolCallId: '1' },
    { sessionUpdate: 'plan', content: undefined },
    { sessionUpdate: '_new' },
  ];
  expect(updates.map(chunkText)).toEqual(['a', '', null, null, null, null, null]);
});

const NOTHING: ModelRetry = { attempt: null, of: null, inMs: null, status: null, reason: null };

test('a retry says in words what is known of it', () => {
  const text = (known: Partial<ModelRetry>) => retryText({ ...NOTHING, ...known });
  expect(text({})).toBe('The model’s API does not answer');
  expect(text({ attempt: 4, of: 10, inMs: 34_800 })).toBe(
    'The model’s API does not answer (attempt 4 of 10, next in 35 s)',
  );
  expect(text({ status: 529, reason: 'overloaded', attempt: 1, inMs: 300 })).toBe(
    'The model’s API does not answer (529 overloaded, attempt 1, next in 1 s)',
  );
});

test('a retry is an update of our own kind', () => {
  const retry = { ...NOTHING, attempt: 2, status: 500 };
  expect(modelRetryIn(retryUpdate(retry))).toMatchObject(retry);
  expect(modelRetryIn({ sessionUpdate: 'plan' })).toBeNull();
});

test('a login counts as refused when the API refuses it again', () => {
  const refused = (status: number | null, attempt: number | null) => refusesLogin({ ...NOTHING, status, attempt });
  expect([refused(401, 1), refused(401, 2), refused(403, 3), refused(401, null)]).toEqual([false, true, true, true]);
  expect([refused(529, 2), refused(null, 2)]).toEqual([false, false]);
});
