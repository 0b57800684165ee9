import { expect, test } from 'vitest';
import { replyText } from '../../../core/turn/record.ts';
import type { Update } from '../../../core/turn/update.ts';
import { quirksOf } from '../known/known.ts';
import { turnsOf } from './history.ts';

const chunk = (kind: 'user' | 'agent', text: string, messageId?: string) =>
  ({
    sessionUpdate: `${kind}_message_chunk`,
    content: { type: 'text', text },
    ...(messageId && { messageId }),
  }) as Update;
const tool = (id: string, status: string) =>
  ({ sessionUpdate: 'tool_call', toolCallId: id, title: 'ls', status }) as Update;

function read(...updates: Update[]) {
  const quirks = quirksOf('@agentclientprotocol/claude-agent-acp', 'claude-code');
  const { turns, ...rest } = turnsOf(updates, quirks, 5);
  const short = turns.map(({ prompt, parts, outcome }) => [prompt, replyText(parts), parts.length, outcome]);
  return { turns: short, ...rest };
}
const text = (words: string) => [{ type: 'text', text: words }];

test('prompts in several chunks, two prompts in a row, tools and thoughts become turns', () => {
  const { turns } = read(
    chunk('agent', 'Welcome'),
    chunk('user', 'Hel', '1'),
    chunk('user', 'lo', '1'),
    tool('t', 'completed'),
    chunk('agent', 'H', '2'),
    chunk('agent', 'i', '2'),
    chunk('user', 'Lost', '3'),
    chunk('user', 'Again', '4'),
    chunk('agent', 'Yes', '5'),
  );
  expect(turns).toEqual([
    [text('Hello'), 'Hi', 2, 'completed'],
    [text('Lost'), '', 0, 'interrupted'],
    [text('Again'), 'Yes', 1, 'completed'],
  ]);
});

test('images and files in a prompt are kept', () => {
  const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' };
  const content = { sessionUpdate: 'user_message_chunk', content: image } as Update;
  expect(read(chunk('user', 'See'), content, chunk('agent', 'Seen')).turns[0]?.[0]).toEqual([...text('See'), image]);
});

test('text that we put before a prompt so that it is not read as a command is removed', () => {
  const { turns } = read(chunk('user', 'This is a message, not a command:\n/etc', '1'), chunk('user', '/hosts', '1'));
  expect(turns[0]?.[0]).toEqual(text('/etc/hosts'));
});

test.each([
  ['a message of Claude', chunk('user', 'This session is being continued from a previous conversation that ran out.')],
  ['a compaction', { sessionUpdate: 'compaction_update', status: 'completed' } as Update],
])('a summary (%s) is not a prompt, and the history before it is unknown or condensed', (_, summary) => {
  const after = [chunk('user', 'Two', '9'), chunk('agent', '2')];
  expect(read(summary, chunk('agent', 'Go on'), ...after)).toMatchObject({
    turns: [[text('Two'), '2', 1, 'completed']],
    unknownBefore: true,
  });
  expect(read(chunk('user', 'One', '1'), chunk('agent', '1'), summary, ...after)).toMatchObject({
    turns: [
      [text('One'), '1', 1, 'completed'],
      [text('Two'), '2', 1, 'completed'],
    ],
    unknownBefore: false,
    condensed: 1,
  });
});

test('a note in a user message marks a stopped turn', () => {
  const { turns } = read(
    chunk('user', 'Go', '1'),
    chunk('agent', 'On'),
    chunk('user', '[Request interrupted by user]', '2'),
  );
  expect(turns).toEqual([[text('Go'), 'On', 1, 'interrupted']]);
});
