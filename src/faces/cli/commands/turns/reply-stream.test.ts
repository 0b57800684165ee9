import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PartsBuilder, replyText } from '../../../../core/turn/record.ts';
import type { Update } from '../../../../core/turn/update.ts';
import { ReplyStream } from './reply-stream.ts';

const text = fc.string({ maxLength: 4 });
const update: fc.Arbitrary<Update> = fc.oneof(
  text.map((said): Update => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: said } })),
  text.map((thought): Update => ({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: thought } })),
  fc.constantFrom('t1', 't2').map((toolCallId): Update => ({ sessionUpdate: 'tool_call', toolCallId })),
  fc.constantFrom('t1', 't2').map((toolCallId): Update => ({ sessionUpdate: 'tool_call_update', toolCallId })),
  fc.constant<Update>({ sessionUpdate: 'plan', entries: [] }),
  fc.constant<Update>({ sessionUpdate: 'agent_message_chunk', content: { type: 'image' } }),
);

test('what was streamed is what the record says afterwards', () => {
  fc.assert(
    fc.property(fc.array(update, { maxLength: 20 }), (updates) => {
      const stream = new ReplyStream();
      const parts = new PartsBuilder();
      for (const one of updates) parts.add(one);
      const streamed = updates.map((one) => stream.add(one)).join('');
      expect(streamed).toBe(replyText(parts.parts()));
      expect(stream.rest(`${streamed} and more`)).toBe(' and more');
    }),
    { numRuns: 2_000 },
  );
});

test('an answer that was found to be longer is completed, another one is left alone', () => {
  const stream = new ReplyStream();
  stream.add({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'half an ' } });
  expect(stream.rest('another answer')).toBe('');
  expect(stream.rest('half an answer')).toBe('answer');
  expect(stream.rest('half an answer')).toBe('');
});
