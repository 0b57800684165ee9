import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Update } from '../../../core/turn/update.ts';
import { quirksOf } from '../known/known.ts';
import { RepeatedHistory } from './repeated.ts';

const chunk = (sessionUpdate: string, text: string, more: object = {}) => ({
  sessionUpdate,
  content: { type: 'text', text },
  ...more,
});
const messagesOf = (...updates: Readonly<Record<string, unknown>>[]) => {
  const history = new RepeatedHistory(quirksOf('@agentclientprotocol/claude-agent-acp', null));
  for (const update of updates) history.add(update as Update);
  return history.messages();
};

test('chunks are joined to messages; a tool or another id begins a new one', () => {
  expect(
    messagesOf(
      chunk('user_message_chunk', 'Do '),
      chunk('user_message_chunk', 'it.'),
      chunk('agent_message_chunk', 'I '),
      chunk('agent_message_chunk', 'will.'),
      { sessionUpdate: 'tool_call', toolCallId: '1' },
      chunk('agent_message_chunk', 'Done.'),
      { sessionUpdate: 'available_commands_update', availableCommands: [] },
      chunk('user_message_chunk', 'One.', { messageId: 'a' }),
      chunk('user_message_chunk', 'Two.', { messageId: 'b' }),
    ).map(({ who, text }) => [who, text]),
  ).toEqual([
    ['person', 'Do it.'],
    ['agent', 'I will.'],
    ['agent', 'Done.'],
    ['person', 'One.'],
    ['person', 'Two.'],
  ]);
});

test('a transcript block is found by its hash, whatever an agent puts around it', () => {
  const block = '<conversation-record 0a1b>\nThen.\n</conversation-record 0a1b>';
  const hash = createHash('sha256').update(block).digest('hex');
  const resource = { type: 'resource', resource: { uri: 'x:', text: block } };
  const said = messagesOf(
    { sessionUpdate: 'user_message_chunk', content: resource },
    chunk('user_message_chunk', 'Now.'),
    chunk('agent_message_chunk', 'Yes.'),
    chunk('user_message_chunk', `x:\n<context ref="x:">\n${block}\n</context>Now.`),
  );
  expect(said.map(({ blocks }) => blocks)).toEqual([[hash], [], [hash]]);
});

test('a summary is recognised', () => {
  const said = messagesOf(
    chunk('user_message_chunk', 'This session is being continued from a previous conversation that ran out.'),
    chunk('agent_message_chunk', 'Go on.'),
    chunk('compaction_summary_chunk', 'All in all.'),
    { sessionUpdate: 'compaction_update', status: 'failed', compactionId: '1' },
    chunk('user_message_chunk', 'And now?'),
    { sessionUpdate: 'compaction_update', status: 'completed', compactionId: '2' },
  );
  expect(said.map(({ who }) => who)).toEqual(['summary', 'agent', 'summary', 'person', 'summary']);
});

test('a note that Claude writes as a user message is recognised, and text of the user is not mistaken for one', () => {
  const said = messagesOf(
    chunk('user_message_chunk', '[Request interrupted by user]'),
    chunk('agent_message_chunk', '[Request interrupted by user]'),
    chunk('user_message_chunk', '[Request interrupted by user for tool use]'),
    chunk('agent_message_chunk', 'No response requested.'),
    chunk('user_message_chunk', 'What is [Request interrupted by user]?'),
  );
  expect(said.map(({ who }) => who)).toEqual(['note', 'agent', 'note', 'agent', 'person']);
});

test('images and sounds are counted, also where an agent links to them', () => {
  const content = (more: object) => ({ sessionUpdate: 'user_message_chunk', content: more });
  const [said] = messagesOf(
    chunk('user_message_chunk', 'Look.'),
    content({ type: 'image', data: 'AAAA', mimeType: 'image/png' }),
    content({ type: 'resource_link', name: 'a', uri: 'file:///tmp/a.PNG' }),
    content({ type: 'resource', resource: { uri: 'x:', blob: 'AAAA', mimeType: 'audio/wav' } }),
    content({ type: 'resource_link', name: 'b', uri: 'file:///tmp/b.ts' }),
    content({ type: 'resource', resource: { uri: 'y:', text: 'words' } }),
  );
  expect(said).toMatchObject({ text: 'Look.words', media: 3 });
});

test('the text beside the blocks is kept', () => {
  const block = '<conversation-record 0a1b>\nThen.\n</conversation-record 0a1b>';
  const [said] = messagesOf(chunk('user_message_chunk', `${block}\nNow.`));
  expect(said?.beside).toBe('\nNow.');
});

test('the number of blocks that are looked for in one message is limited', () => {
  const block = '<conversation-record 0a1b>x</conversation-record 0a1b>';
  const [said] = messagesOf(chunk('user_message_chunk', block.repeat(150)));
  expect(said?.blocks).toHaveLength(100);
  expect(said?.beside).toBe(block.repeat(50));
});
