import { describe, expect, test } from 'vitest';
import { PartsBuilder } from '../../../core/turn/record.ts';
import type { Entry, EntryMessage } from './entries.ts';
import { cameToItsEnd, updatesOf, usageIn } from './updates.ts';

const assistant = (content: unknown, more: object = {}): Entry => {
  return { type: 'assistant', message: { role: 'assistant', model: 'claude-opus', content }, ...more } as Entry;
};
const user = (content: unknown, more: object = {}): Entry => {
  return { type: 'user', message: { role: 'user', content }, ...more } as Entry;
};

test('text, thoughts and tools become updates, in their order', () => {
  const updates = updatesOf([
    user('the prompt'),
    assistant([{ type: 'thinking', thinking: 'hm', signature: 's' }]),
    assistant([{ type: 'text', text: 'I look.' }]),
    assistant([{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: { file_path: '/a/b' } }]),
    user([{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'line 1' }]),
  ]);
  expect(updates).toEqual([
    { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'hm' } },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'I look.' } },
    {
      sessionUpdate: 'tool_call',
      toolCallId: 'toolu_1',
      title: 'Read',
      kind: 'read',
      locations: [{ path: '/a/b' }],
      rawInput: { file_path: '/a/b' },
      status: 'pending',
    },
    {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'toolu_1',
      status: 'completed',
      content: [{ type: 'content', content: { type: 'text', text: 'line 1' } }],
    },
  ]);
});

test('updates give records: a failed tool, a tool without an end, an image', () => {
  const builder = new PartsBuilder();
  const entries = [
    assistant([
      { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'false' } },
      { type: 'tool_use', id: 'toolu_2', name: 'mcp__x__y', input: null },
      { type: 'tool_use', id: 'toolu_3', name: 'Glob', input: { path: 'src' } },
    ]),
    user([{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'exit 1', is_error: true }]),
    user([{ type: 'tool_result', tool_use_id: 'toolu_3', content: [{ type: 'text', text: 'a' }, { type: 'image' }] }]),
  ];
  for (const update of updatesOf(entries)) builder.add(update);
  expect(builder.parts()).toMatchObject([
    { name: 'Bash', kind: 'execute', target: 'false', input: { command: 'false' }, output: 'exit 1', status: 'failed' },
    { name: 'mcp__x__y', kind: 'other', input: {}, output: null, status: 'unknown' },
    { name: 'Glob', kind: 'search', target: 'src', output: 'a\n[image]', status: 'completed' },
  ]);
});

test('subagents, errors, Claude’s own texts and empty blocks are left out', () => {
  const text = [{ type: 'text', text: 'not mine' }];
  const synthetic = { type: 'assistant', message: { model: '<synthetic>', content: text } } as Entry;
  expect(
    updatesOf([
      assistant(text, { isSidechain: true }),
      assistant(text, { isApiErrorMessage: true }),
      synthetic,
      assistant([{ type: 'text', text: '' }, { type: 'thinking', thinking: '' }, { type: 'redacted_thinking' }]),
      assistant([{ type: 'tool_use' }]),
      user([{ type: 'tool_result' }]),
      { type: 'attachment' },
      { type: 'assistant' },
    ]),
  ).toEqual([]);
});

test('a title is reported, from Claude or from the user', () => {
  expect(
    updatesOf([
      { type: 'ai-title', aiTitle: 'A' },
      { type: 'custom-title', customTitle: 'B' },
    ]),
  ).toEqual([
    { sessionUpdate: 'session_info_update', title: 'A' },
    { sessionUpdate: 'session_info_update', title: 'B' },
  ]);
});

describe('whether a turn came to its end', () => {
  const said = (stop_reason: string | null, content: unknown, more: object = {}): Entry => ({
    type: 'assistant',
    message: { id: 'msg_1', role: 'assistant', model: 'claude-opus', stop_reason, content } as EntryMessage,
    ...more,
  });
  const text = [{ type: 'text', text: 'Done.' }];
  const thought = [{ type: 'thinking', thinking: 'hm' }];
  const call = said('tool_use', [{ type: 'tool_use', id: 't1', name: 'Bash', input: {} }]);
  const result = user([{ type: 'tool_result', tool_use_id: 't1', content: 'ok' }]);
  const end = said('end_turn', text);
  const notice = user([{ type: 'text', text: '[Request interrupted by user]' }]);
  test.each<[string, boolean, Entry[]]>([
    ['an answer', true, [end]],
    ['an answer after a tool', true, [call, result, end]],
    ['an answer with thoughts', true, [said('end_turn', thought), end]],
    ['an answer, and then entries that are no messages', true, [end, { type: 'attachment', uuid: 'x' }]],
    ['an answer beside a subagent', true, [end, said('tool_use', [], { isSidechain: true })]],
    ['nothing', false, []],
    ['a call without its result', false, [call]],
    ['a result without an answer', false, [call, result]],
    ['an answer while a tool is open', false, [call, end]],
    ['an answer that continues', false, [said('tool_use', text)]],
    ['an answer that was cut', false, [said('max_tokens', text)]],
    ['an answer of a version that does not report the stop reason', false, [said(null, text)]],
    ['thoughts whose text was not written', false, [said('end_turn', thought)]],
    ['an empty text', false, [said('end_turn', [{ type: 'text', text: '' }])]],
    ['an error of the API', false, [said('stop_sequence', text, { isApiErrorMessage: true })]],
    [
      'a text that Claude Code inserted',
      false,
      [assistant(text, { message: { model: '<synthetic>', content: text } })],
    ],
    ['an interruption', false, [end, notice]],
    ['a hook that makes it continue', false, [end, user('Go on.', { isMeta: true })]],
  ])('%s: %j', (_, ended, entries) => {
    expect(cameToItsEnd(entries)).toBe(ended);
  });

  test('what it used is counted once for each answer, however many entries it has', () => {
    const usage = { input_tokens: 5, output_tokens: 2, cache_read_input_tokens: 7 };
    const entries = ['a', 'a', 'b'].map((id) => assistant(text, { message: { id, usage, content: text } }));
    expect(usageIn(entries)).toMatchObject({ inputTokens: 10, outputTokens: 4, cacheReadTokens: 14, modelCalls: 2 });
  });
});
