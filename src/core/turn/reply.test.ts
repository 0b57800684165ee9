import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PartsBuilder, replyText } from './record.ts';
import { ReplyStream } from './reply.ts';
import { RETRACTED, type Update } from './update.ts';

const text = fc.string({ maxLength: 4 });
const update: fc.Arbitrary<Update> = fc.oneof(
  text.map((said): Update => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: said } })),
  text.map((thought): Update => ({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: thought } })),
  fc.constantFrom('t1', 't2').map((toolCallId): Update => ({ sessionUpdate: 'tool_call', toolCallId })),
  fc.constantFrom('t1', 't2').map((toolCallId): Update => ({ sessionUpdate: 'tool_call_update', toolCallId })),
  fc.constant<Update>({ sessionUpdate: 'plan', entries: [] }),
  fc.constant<Update>({ sessionUpdate: 'agent_message_chunk', content: { type: 'image' } }),
);

const message = fc.constantFrom('m1', 'm2', undefined);
const withRetractions: fc.Arbitrary<Update> = fc.oneof(
  update,
  fc
    .record({ messageId: message, words: fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', 'b') }) })
    .map(({ messageId, words }) => said(words, messageId)),
  message.map((messageId) => retracted(messageId ?? null)),
  fc.nat(5).map((characters): Update => ({ sessionUpdate: RETRACTED, messageId: 'm1', characters })),
);

const said = (words: string, messageId?: string): Update => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text: words },
  ...(messageId !== undefined && { messageId }),
});
const retracted = (messageId: string | null): Update => ({ sessionUpdate: RETRACTED, messageId });

test('the streamed text is the text of the record', () => {
  fc.assert(
    fc.property(fc.array(update, { maxLength: 20 }), (updates) => {
      const stream = new ReplyStream();
      const parts = new PartsBuilder();
      for (const one of updates) parts.add(one);
      const streamed = updates.map((one) => stream.add(one)).join('');
      expect(streamed).toBe(replyText(parts.parts()));
      expect(stream.end(`${streamed} and more`)).toBe(' and more');
    }),
    { numRuns: 2_000 },
  );
});

test('the whole text is always the text of the record so far, whatever was retracted', () => {
  fc.assert(
    fc.property(fc.array(withRetractions, { maxLength: 20 }), (updates) => {
      const stream = new ReplyStream();
      const parts = new PartsBuilder();
      for (const one of updates) {
        stream.add(one);
        parts.add(one);
        expect(stream.text).toBe(replyText(parts.parts()));
      }
    }),
    { numRuns: 5_000 },
  );
});

test.each<[string, (string | Update)[], string]>([
  ['the same again', ['The cap', retracted('m1'), 'The', ' capital is Paris.'], 'The capital is Paris.'],
  ['something else', ['The cap', retracted('m1'), 'Paris', ' it is.'], 'The cap\n\nParis it is.'],
  ['in part the same', ['The cap', retracted('m1'), 'The', ' city'], 'The cap\n\nThe city'],
  ['nothing', ['The cap', retracted('m1')], 'The cap'],
  [
    'something else after a paragraph that stays',
    [said('First.', 'm0'), { sessionUpdate: 'tool_call', toolCallId: 't1' }, 'Sec', retracted('m1'), 'Third.'],
    'First.\n\nSec\n\nThird.',
  ],
  [
    'a message that repeats it before it is retracted',
    ['The cap', said('The cap', 'm2'), retracted('m1'), said('ital.', 'm2')],
    'The capThe cap\n\nThe capital.',
  ],
])('retracted text that is replaced by %s', (_, updates, shown) => {
  const stream = new ReplyStream();
  const all = updates.map((one) => stream.add(typeof one === 'string' ? said(one, 'm1') : one)).join('');
  expect(all + stream.end(stream.text)).toBe(shown);
});

test('the reply of a failed attempt does not count, and the same beginning is not shown twice', () => {
  const stream = new ReplyStream();
  expect(stream.add(said('The cap'))).toBe('The cap');
  expect(stream.restart()).toBe('');
  expect(stream.text).toBe('');
  expect(stream.add(said('The capital.'))).toBe('ital.');
  expect(stream.text).toBe('The capital.');
});

test('an answer that turns out longer is completed; one that differs is shown again from that paragraph', () => {
  const stream = new ReplyStream();
  stream.add(said('One.\n\nhalf an '));
  expect(stream.end('One.\n\nhalf an answer')).toBe('answer');
  expect(stream.end('One.\n\nhalf an answer')).toBe('');
  expect(stream.end('One.\n\nanother answer')).toBe('\n\nanother answer');
});
