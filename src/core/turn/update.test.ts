import { expect, test } from 'vitest';
import { chunkText, type Update } from './update.ts';

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
