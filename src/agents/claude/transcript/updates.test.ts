import { expect, test } from 'vitest';
import { PartsBuilder } from '../../../core/turn/record.ts';
import type { Entry } from './entries.ts';
import { updatesOf } from './updates.ts';

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
