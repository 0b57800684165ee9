import { describe, expect, test } from 'vitest';
import { PartsBuilder } from '../../../core/turn/record.ts';
import { SPENT } from '../../../core/turn/update.ts';
import type { AgentEvent } from '../../../ports/agent.ts';
import type { ClaudeMessage } from '../connection.ts';
import { TurnReader } from './turn-reader.ts';

const PROMPT = '11111111-1111-4111-8111-111111111111';

const stream = (event: object, more: object = {}): ClaudeMessage => ({
  type: 'stream_event',
  parent_tool_use_id: null,
  event,
  ...more,
});
const start = (id: string) => stream({ type: 'message_start', message: { id } });
const delta = (text: string, index = 0) =>
  stream({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
const thinking = (text: string, index = 0) =>
  stream({ type: 'content_block_delta', index, delta: { type: 'thinking_delta', thinking: text } });
const assistant = (id: string, content: object[], more: object = {}): ClaudeMessage => ({
  type: 'assistant',
  uuid: `uuid-of-${id}`,
  message: { id, role: 'assistant', model: 'claude', content },
  parent_tool_use_id: null,
  ...more,
});
const said = (text: string) => ({ type: 'text', text });
const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } };
const toolResult: ClaudeMessage = {
  type: 'user',
  uuid: 'uuid-of-result',
  parent_tool_use_id: null,
  message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a', is_error: false }] },
};
const result = (more: object = {}): ClaudeMessage => ({
  type: 'result',
  subtype: 'success',
  is_error: false,
  terminal_reason: 'completed',
  user_message_uuids: [PROMPT],
  total_cost_usd: 0.5,
  usage: { input_tokens: 10, output_tokens: 2, cache_read_input_tokens: 3, cache_creation_input_tokens: 4 },
  ...more,
});
const state = (value: string): ClaudeMessage => ({ type: 'system', subtype: 'session_state_changed', state: value });

function turn(): TurnReader {
  return new TurnReader(PROMPT, null, '2.1.325');
}

function read(reader: TurnReader, messages: readonly ClaudeMessage[]): { events: AgentEvent[]; parts: unknown[] } {
  const events = messages.flatMap((message) => reader.read(message));
  const builder = new PartsBuilder();
  for (const event of events) if (event.type === 'update') builder.add(event.update);
  return { events, parts: builder.parts() };
}

describe('the answer', () => {
  test('is streamed once, with the tools in their place', () => {
    const reader = turn();
    const { parts } = read(reader, [
      start('m1'),
      thinking('Hm.'),
      delta('I ', 1),
      delta('look.', 1),
      assistant('m1', [said('I look.')]),
      assistant('m1', [call]),
      toolResult,
      start('m2'),
      delta('Done.'),
      assistant('m2', [said('Done.')]),
    ]);
    expect(parts).toMatchObject([
      { type: 'thought', text: 'Hm.' },
      { type: 'text', text: 'I look.' },
      { type: 'tool', name: 'Bash', status: 'completed', output: 'a' },
      { type: 'text', text: 'Done.' },
    ]);
    expect([...reader.entries]).toEqual(['uuid-of-m1', 'uuid-of-result', 'uuid-of-m2']);
  });

  test('is read from complete messages if nothing was streamed', () => {
    expect(read(turn(), [assistant('m1', [said('All at once.')])]).parts).toEqual([
      { type: 'text', text: 'All at once.' },
    ]);
  });

  test('leaves out texts of subagents and texts that Claude Code inserted', () => {
    const reader = turn();
    const { events } = read(reader, [
      stream({ type: 'content_block_delta', delta: { type: 'text_delta', text: 'x' } }, { parent_tool_use_id: 't' }),
      assistant('m1', [said('x')], { parent_tool_use_id: 'toolu_9' }),
      { ...assistant('m2', []), message: { model: '<synthetic>', content: [said('API Error')] } },
      { type: 'something_new', field: 1 },
      { type: 'stream_event', parent_tool_use_id: null },
      { type: 'assistant', parent_tool_use_id: null },
    ]);
    expect(events).toEqual([]);
    expect(reader.entries.size).toBe(0);
  });

  test('leaves out the incomplete block of a broken stream, and keeps complete blocks', () => {
    const broken = { abandoned_blocks: { api_message_id: 'm1', from_block_index: 1 } };
    const { parts } = read(turn(), [
      start('m1'),
      delta('Whole. ', 0),
      delta('Hal', 1),
      stream({ type: 'message_stop' }, broken),
      { type: 'system', subtype: 'api_retry', attempt: 1, max_retries: 10 },
      start('m2'),
      delta('Half.', 0),
    ]);
    expect(parts).toEqual([{ type: 'text', text: 'Whole. Half.' }]);
  });

  test('has retries and compaction as updates', () => {
    const { events } = read(turn(), [
      { type: 'system', subtype: 'api_retry', attempt: 2, max_retries: 10, error_status: 529 },
      { type: 'system', subtype: 'compact_boundary', compact_metadata: { trigger: 'auto' } },
    ]);
    expect(events).toMatchObject([
      { update: { sessionUpdate: '_throughline/model_retry', attempt: 2, of: 10, status: 529 } },
      { update: { sessionUpdate: 'compaction_update', status: 'completed' } },
    ]);
  });
});

describe('the end', () => {
  test('is our result and being idle after it; a result of a background agent is not ours', () => {
    const reader = turn();
    read(reader, [state('running'), start('m1'), { ...delta('x'), user_message_uuids: [PROMPT] }]);
    read(reader, [
      result({ user_message_uuids: ['another'], is_error: true }),
      result({ user_message_uuids: undefined }),
    ]);
    expect(reader.outcome).toBeNull();
    read(reader, [result()]);
    expect(reader.outcome).toEqual({ kind: 'completed' });
    expect(reader.over).toBe(false);
    read(reader, [state('idle')]);
    expect(reader.over).toBe(true);
  });

  test('is not the answer to a notice that Claude handles before the prompt', () => {
    const reader = turn();
    const notice = result({ user_message_uuids: undefined, num_turns: 0, origin: { kind: 'task-notification' } });
    read(reader, [state('running'), notice, state('idle')]);
    expect(reader.outcome).toBeNull();
    read(reader, [state('running'), result(), state('idle')]);
    expect([reader.outcome, reader.over]).toEqual([{ kind: 'completed' }, true]);
  });

  test('is not the answer to something else while our prompt waits', () => {
    const reader = turn();
    const lifecycle = (state: string): ClaudeMessage => ({ type: 'command_lifecycle', command_uuid: PROMPT, state });
    read(reader, [state('running'), lifecycle('queued'), result({ user_message_uuids: undefined, result: '' })]);
    expect(reader.outcome).toBeNull();
    read(reader, [lifecycle('started'), result(), state('idle')]);
    expect(reader.outcome).toMatchObject({ kind: 'completed' });
  });

  test('is a result that names no prompt, where no message has named one', () => {
    const reader = turn();
    read(reader, [result({ user_message_uuids: undefined })]);
    expect(reader.outcome).toEqual({ kind: 'completed' });
  });

  test('without any result is a failure, and not an endless wait', () => {
    const reader = turn();
    read(reader, [state('running'), state('idle')]);
    expect(reader.outcome).toMatchObject({ kind: 'failed', again: false });
  });

  test('reports after every tool what the calls of the model have used so far, and nothing twice', () => {
    const usage = { input_tokens: 100, output_tokens: 1, cache_read_input_tokens: 10 };
    const { events } = read(turn(), [
      stream({ type: 'message_start', message: { id: 'm1', usage } }),
      stream({ type: 'message_delta', usage: { output_tokens: 7 } }),
      assistant('m1', [call]),
      toolResult,
      toolResult,
      { ...assistant('s1', [said('x')]), message: { id: 's1', usage }, parent_tool_use_id: 'toolu_1' },
      { ...toolResult, parent_tool_use_id: 'toolu_1' },
      result(),
    ]);
    const told = events.flatMap((event) => (event.type === 'update' ? [event.update] : []));
    expect(told.filter(({ sessionUpdate }) => sessionUpdate === SPENT)).toEqual([
      { sessionUpdate: SPENT, inputTokens: 100, outputTokens: 7, cacheReadTokens: 10, cacheWriteTokens: 0 },
      { sessionUpdate: SPENT, inputTokens: 200, outputTokens: 8, cacheReadTokens: 20, cacheWriteTokens: 0 },
    ]);
  });

  test('knows how much of the context the last call took up, and does not count those of subagents', () => {
    const usage = { input_tokens: 100, output_tokens: 1, cache_read_input_tokens: 10 };
    const reader = turn();
    expect(reader.contextUsed).toBeNull();
    read(reader, [
      stream({ type: 'message_start', message: { id: 'm1', usage } }),
      stream({ type: 'message_delta', usage: { output_tokens: 7 } }),
      {
        ...assistant('s1', [said('x')]),
        message: { id: 's1', usage: { input_tokens: 9_000 } },
        parent_tool_use_id: 't',
      },
    ]);
    expect(reader.contextUsed).toBe(117);
    read(reader, [
      {
        ...assistant('m2', [said('x')]),
        message: { id: 'm2', model: 'claude', content: [], usage: { input_tokens: 130 } },
      },
    ]);
    expect(reader.contextUsed).toBe(130);
  });

  test('adds up the usage of every result, and notices lost writes', () => {
    const reader = turn();
    const { events } = read(reader, [
      assistant('m1', []),
      result(),
      assistant('m2', []),
      result({ user_message_uuids: ['another'], total_cost_usd: 0.7 }),
      { type: 'system', subtype: 'session_writes_lost' },
    ]);
    const usages = events.flatMap((event) => (event.type === 'usage' ? [event.usage] : []));
    expect(usages).toMatchObject([
      { inputTokens: 10, outputTokens: 2, cacheReadTokens: 3, cacheWriteTokens: 4, costMicros: 500_000, modelCalls: 1 },
      { costMicros: 200_000, modelCalls: 1 },
    ]);
    expect(reader.costUsd).toBe(0.7);
    expect(reader.writesLost).toBe(true);
  });
});
