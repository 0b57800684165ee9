import { describe, expect, test } from 'vitest';
import { faultOf } from '../../../test/values/thrown.ts';
import type { ExportedConversation } from '../portable.ts';
import { replyText } from '../turn/record.ts';
import { asJsonMessages } from './message-content.ts';
import { importSteps } from './messages.ts';

const PNG = 'iVBORw0KGgo=';
const BYTES = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function imported(messages: unknown, agent?: string): ExportedConversation {
  const steps = importSteps(messages, { agent, defaultAgent: () => 'claude', now: 7 });
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: unknown, more: object = {}) => ({ role: 'assistant', content, ...more });

test('messages of users, and everything up to the next one, are a turn of the agent that continues', () => {
  const { conversation, records, sessions } = imported([
    user('One?'),
    assistant('Yes.'),
    user('Two?'),
    assistant('No.'),
  ]);
  expect(conversation).toEqual({ key: null, title: 'One?', agent: 'claude', restore: {} });
  expect(sessions).toEqual([]);
  expect(records).toMatchObject([
    { n: 1, agent: 'claude', sessionId: null, outcome: 'completed', failure: null, startedAt: 7, endedAt: 7 },
    { n: 2, prompt: [{ type: 'text', text: 'Two?' }], parts: [{ type: 'text', text: 'No.' }] },
  ]);
  expect(imported([user('Hello.')], 'gemini').conversation.agent).toBe('gemini');
});

test('a fault in the messages is reported before an agent is needed, and not as a fault of an export', () => {
  const noAgent = { defaultAgent: () => expect.unreachable(), now: 7 };
  const run = (input: unknown, agent?: string) => Array.from(importSteps(input, { ...noAgent, agent }));
  expect(faultOf(() => run([]))?.message).toContain('the list is empty');
  expect(faultOf(() => run([user('A'), assistant('B'), { role: 'system', content: 'C' }]))?.message).toContain(
    'Message 3',
  );
  for (const input of ['text', null, { messages: [] }]) {
    expect(faultOf(() => run(input, 'claude'))).toMatchObject({ code: 'invalid' });
  }
});

test('messages of one role in a row are one: the prompt has all blocks, the answer all paragraphs', () => {
  const { records } = imported([user('A'), user([{ type: 'text', text: 'B' }]), assistant('C'), assistant('D')]);
  expect(records).toHaveLength(1);
  expect(records[0]?.prompt).toEqual([
    { type: 'text', text: 'A' },
    { type: 'text', text: 'B' },
  ]);
  expect(replyText(records[0]?.parts ?? [])).toBe('C\n\nD');
});

test('a user without an answer is a turn that was interrupted and can be retried; so is one that ends with a tool', () => {
  const interrupted = {
    outcome: 'interrupted',
    failure: { code: 'interrupted', hint: expect.stringContaining('Retry') },
  };
  const call = assistant(null, {
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
  });
  const result = { role: 'tool', tool_call_id: 'c1', content: 'done' };
  expect(imported([user('A'), assistant('B'), user('C')]).records).toMatchObject([
    { outcome: 'completed' },
    { n: 2, parts: [], ...interrupted },
  ]);
  expect(imported([user('A'), call]).records).toMatchObject([{ parts: [{ status: 'unknown' }], ...interrupted }]);
  expect(imported([user('A'), call, result]).records).toMatchObject([
    { parts: [{ status: 'completed' }], ...interrupted },
  ]);
  expect(imported([user('A'), call, result, assistant('B')]).records).toMatchObject([{ outcome: 'completed' }]);
});

test('if a list begins with the assistant, the first turn is marked as having no prompt', () => {
  const { records } = imported([assistant('How can I help?'), user('Hi.'), assistant('Hi.')]);
  expect(records).toMatchObject([
    { prompt: [{ text: '[no prompt: the assistant spoke first]' }], parts: [{ text: 'How can I help?' }] },
    { prompt: [{ text: 'Hi.' }] },
  ]);
});

const TOOL = { type: 'tool', id: 'c1', name: 'weather', target: null, input: { city: 'Oslo' } };

describe('tools and thoughts are those of', () => {
  test.each<[string, unknown[]]>([
    [
      'the AI SDK',
      [
        user('Weather?'),
        assistant([
          { type: 'reasoning', text: 'Hm.' },
          { type: 'text', text: 'I look.' },
          { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: { city: 'Oslo' } },
        ]),
        {
          role: 'tool',
          content: [
            { type: 'tool-result', toolCallId: 'c1', toolName: 'weather', output: { type: 'json', value: { c: 7 } } },
          ],
        },
        assistant([{ type: 'text', text: 'Cold.' }]),
      ],
    ],
    [
      'Anthropic',
      [
        user([{ type: 'text', text: 'Weather?' }]),
        assistant([
          { type: 'thinking', thinking: 'Hm.', signature: 'x' },
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'c1', name: 'weather', input: { city: 'Oslo' } },
        ]),
        user([{ type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: '{"c":7}' }] }]),
        assistant([{ type: 'text', text: 'Cold.' }]),
      ],
    ],
  ])('%s', (_, messages) => {
    const { records } = imported(messages);
    expect(records).toHaveLength(1);
    expect(records[0]?.parts).toMatchObject([
      { type: 'thought', text: 'Hm.' },
      { type: 'text', text: 'I look.' },
      { ...TOOL, output: '{"c":7}', status: 'completed' },
      { type: 'text', text: 'Cold.' },
    ]);
  });

  test('OpenAI, also the older kind, and what failed', () => {
    const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
    const { records } = imported([
      user('Weather?'),
      assistant(null, { tool_calls: [call] }),
      { role: 'tool', tool_call_id: 'c1', content: '7' },
      assistant(null, { function_call: { name: 'now', arguments: 'no JSON' } }),
      { role: 'function', name: 'now', content: 'noon' },
      assistant(null, { refusal: 'I cannot say.' }),
    ]);
    expect(records[0]?.parts).toMatchObject([
      { ...TOOL, output: '7' },
      { id: 'now', name: 'now', input: 'no JSON', output: 'noon' },
      { type: 'text', text: 'I cannot say.' },
    ]);
    const failed = [{ type: 'tool_result', tool_use_id: 'c1', content: 'no such city', is_error: true }];
    const error = { type: 'tool-result', toolCallId: 'c2', toolName: 'x', output: { type: 'error-text', value: 'no' } };
    const parts = imported([user('A'), user(failed), { role: 'tool', content: [error] }, assistant('B')]).records[0]
      ?.parts;
    expect(parts).toMatchObject([
      { status: 'failed', output: 'no such city' },
      { name: 'x', status: 'failed', output: 'no' },
      { text: 'B' },
    ]);
  });
});

test.each<[string, object, object]>([
  ['AI SDK, bytes', { type: 'image', image: BYTES }, { type: 'image', data: PNG, mimeType: 'image/png' }],
  [
    'AI SDK, base64',
    { type: 'image', image: PNG, mediaType: 'image/png' },
    { type: 'image', data: PNG, mimeType: 'image/png' },
  ],
  [
    'AI SDK, address',
    { type: 'image', image: new URL('https://example.org/a.png') },
    { type: 'resource_link', uri: 'https://example.org/a.png', name: 'file' },
  ],
  [
    'AI SDK, file',
    { type: 'file', data: 'JVBERg==', mediaType: 'application/pdf', filename: 'a.pdf' },
    { type: 'resource', resource: { uri: 'a.pdf', blob: 'JVBERg==', mimeType: 'application/pdf' } },
  ],
  [
    'OpenAI, data URL',
    { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
    { type: 'image', data: PNG, mimeType: 'image/png' },
  ],
  [
    'OpenAI, responses',
    { type: 'input_image', image_url: 'https://example.org/a.png' },
    { type: 'resource_link', uri: 'https://example.org/a.png', name: 'file' },
  ],
  [
    'OpenAI, audio',
    { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
    { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
  ],
  [
    'OpenAI, file',
    { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' } },
    { type: 'resource', resource: { uri: 'a.pdf', blob: 'JVBERg==', mimeType: 'application/pdf' } },
  ],
  [
    'Anthropic, image',
    { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: '/9j/AA==' } },
    { type: 'image', data: '/9j/AA==', mimeType: 'image/jpeg' },
  ],
  [
    'Anthropic, document',
    { type: 'document', title: 'Notes', source: { type: 'text', media_type: 'text/plain', data: 'amber' } },
    { type: 'resource', resource: { uri: 'Notes', text: 'amber' } },
  ],
  [
    'our own',
    { type: 'resource_link', uri: 'file:///a', name: 'a' },
    { type: 'resource_link', uri: 'file:///a', name: 'a' },
  ],
])('content of a user: %s', (_, part, block) => {
  expect(imported([user([part])]).records[0]?.prompt).toEqual([block]);
  // The same after it was sent as JSON.
  const sent = JSON.parse(JSON.stringify(asJsonMessages([user([part])])));
  expect(imported(sent).records[0]?.prompt).toEqual([block]);
});

test.each<[unknown, string]>([
  [[], 'the list is empty'],
  [['Hello.'], 'message 1 is not an object'],
  [[user('A'), { role: 'robot', content: 'B' }], 'message 2 has the role "robot"'],
  [[user('')], 'message 1 is empty'],
  [[user(7)], 'message 1 has a content that is neither'],
  [[{ role: 'user' }], 'message 1 has no content'],
  [[{ role: 'user', parts: [] }], 'message 1 has "parts" and no "content"'],
  [[user(['A'])], 'message 1, part 1 is not an object'],
  [[user([{ type: 'text' }])], 'message 1, part 1 ("text") needs the text field "text"'],
  [[user([{ type: 'hologram' }])], 'message 1, part 1 has the type "hologram"'],
  [[user([{ type: 'file', file: { file_id: 'f-1' } }])], 'message 1, part 1 has no data'],
  [[assistant('A', { tool_calls: [{}] })], 'message 1 has a tool call (1) that cannot be read'],
  [[user('\ud800')], 'the record of turn 1: '],
  [[{ role: 'system', content: 'Be kind.' }, user('A')], 'Message 1 has the role "system"'],
  [[user('A'), { role: 'developer', content: 'Be kind.' }], 'Message 2 has the role "developer"'],
])('%j is refused with its place', (messages, message) => {
  const fault = faultOf(() => imported(messages));
  expect(fault).toMatchObject({ code: 'invalid', hint: expect.any(String) });
  expect(String(fault)).toContain(message);
});

test('an exported conversation has its own agents', () => {
  expect(faultOf(() => imported(imported([user('A')]), 'claude'))).toMatchObject({ code: 'refused' });
});
