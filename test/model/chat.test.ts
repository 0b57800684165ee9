import { describe, expect, test } from 'vitest';
import { acknowledgement, codewordsIn, conversationOf } from '../../src/testing/index.ts';
import { modelForTests, post, stream } from './speaking.ts';

const model = modelForTests();
const PATH = '/v1/chat/completions';
const BASH = { type: 'function', function: { name: 'bash', parameters: { type: 'object' } } };
const said = (role: string, content: unknown) => ({ role, content });
const asked = (...messages: object[]) => ({ model: 'm', tools: [BASH], messages });
const say = (...messages: object[]) => post(model.current, PATH, asked(...messages));
const prompt = (text: string) => asked(said('user', text));

describe('OpenAI Chat Completions', () => {
  const CALL = prompt('model: say Calling.\nmodel: tool bash {"command":"ls"}');

  test('a streamed answer contains the same as a whole one', async () => {
    const { body } = await post(model.current, PATH, CALL);
    const { events, whole } = await stream(model.current, PATH, CALL);
    expect(whole).toBe(true);
    expect(events.at(-1)?.data).toBe('[DONE]');
    const choices = events.slice(0, -1).map(({ data }) => data.choices[0]);
    expect(choices.map(({ delta }) => delta.content ?? '').join('')).toBe(body.choices[0].message.content);
    const [named, given] = choices.flatMap(({ delta }) => delta.tool_calls ?? []);
    const [call] = body.choices[0].message.tool_calls;
    expect(named.function.name).toBe(call.function.name);
    expect(given).toEqual({ index: 0, function: { arguments: call.function.arguments } });
    expect(choices.at(-1).finish_reason).toBe(body.choices[0].finish_reason);
    expect(body.choices[0].finish_reason).toBe('tool_calls');
  });

  test('the usage of a stream comes last and without a choice, if it was requested', async () => {
    const { events: without } = await stream(model.current, PATH, {
      ...prompt('Hi.'),
      stream_options: { include_usage: false },
    });
    expect(without.flatMap(({ data }) => data.usage ?? [])).toEqual([]);
    expect(Object.keys(without[0]?.data)).not.toContain('usage');
    const counting = { ...prompt('Hi.'), stream_options: { include_usage: true } };
    const { events } = await stream(model.current, PATH, counting);
    const usages = events.slice(0, -1).map(({ data }) => data.usage);
    expect(usages.slice(0, -1).every((usage) => usage === null)).toBe(true);
    expect(events.at(-2)?.data.choices).toEqual([]);
    const bytes = JSON.stringify({ ...counting, stream: true }).length;
    const output = Math.ceil(acknowledgement('Hi.').length / 4);
    expect(usages.at(-1)).toMatchObject({
      prompt_tokens: Math.ceil(bytes / 4),
      completion_tokens: output,
      total_tokens: Math.ceil(bytes / 4) + output,
    });
  });

  test('roles, tools and their results are read from the messages', async () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'bash', arguments: '{"a":1}' } };
    const { body } = await say(
      said('system', 'Be good.'),
      said('developer', 'The codeword is ash.'),
      said('user', [
        { type: 'text', text: 'The codeword is birch. Which codewords have you seen?\nmodel: tool bash {}' },
        { type: 'image_url', image_url: { url: 'data:' } },
      ]),
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'The codeword is cedar.' },
    );
    expect(body.choices[0].message.content).toBe('I have seen these codewords: birch, cedar.');
    const request = model.current.lastRequest();
    expect(request).toMatchObject({ api: 'openai-chat', model: 'm', system: 'Be good.\nThe codeword is ash.' });
    expect(request?.tools).toEqual(['bash']);
    expect(request?.messages.map(({ role }) => role).join()).toBe('system,system,user,assistant,user');
    expect(request?.messages[3]?.toolUses).toEqual([{ id: 'call_1', name: 'bash', input: { a: 1 } }]);
    expect(request?.messages[4]?.toolResults).toEqual([
      { id: 'call_1', text: 'The codeword is cedar.', isError: false },
    ]);
    expect(request && codewordsIn(request)).toEqual(['birch', 'cedar']);
    expect(request && conversationOf(request)).toHaveLength(1);
  });

  test.each([
    [429, 'invalid_request_error', 'rate_limit_exceeded'],
    [500, 'server_error', 'server_error'],
    [529, 'server_error', 'server_is_overloaded'],
  ])('fails with %i as OpenAI does, also if a stream was requested', async (status, type, code) => {
    const failing = { ...prompt(`model: fail ${status}`), stream: true };
    const answer = await post(model.current, PATH, failing);
    expect(answer).toEqual({ status, body: { error: { message: 'failed as asked', type, param: null, code } } });
  });

  test('a prompt that is too long is refused in the words of OpenAI', async () => {
    const { status, body } = await post(model.current, PATH, prompt('model: too-long'));
    expect([status, body.error.code]).toEqual([400, 'context_length_exceeded']);
    expect(body.error.message).toContain('maximum context length is 200000 tokens');
  });

  test('a stream that is broken off has half of the text, no finish reason and no end', async () => {
    const { events, whole } = await stream(model.current, PATH, prompt('model: stream 4 1ms\nmodel: break'));
    expect(whole).toBe(false);
    expect(events.at(-1)?.data.choices[0]).toMatchObject({ delta: { content: 'chunk 2 ' }, finish_reason: null });
    expect(model.current.requests.at(-1)?.answer).toMatchObject({ broken: true, usage: null });
  });

  test('an answer has the requested form', async () => {
    const schema = { type: 'object', properties: { title: { type: 'string' } } };
    const format = { type: 'json_schema', json_schema: { name: 'title', schema } };
    const errand = { model: 'm', response_format: format, messages: [said('user', 'model: fail 500')] };
    const { body } = await post(model.current, PATH, errand);
    expect(JSON.parse(body.choices[0].message.content)).toEqual({ title: 'a-conversation' });
    expect(model.current.requests.at(-1)?.side).toBe(true);
  });
});

describe('what agents put around a prompt', () => {
  test.each([
    ['before it', '<current_datetime>2026-01-01</current_datetime>\n\nHello.'],
    ['after it', 'Hello.\n<turn-context>\n<current-time>now</current-time>\n</turn-context>'],
  ])('%s is not part of what the person said', async (_where, text) => {
    const { body } = await say(said('user', text));
    expect(body.choices[0].message.content).toBe(acknowledgement('Hello.'));
    const request = model.current.lastRequest();
    expect(request && conversationOf(request)).toEqual([{ role: 'user', text: 'Hello.' }]);
  });

  test('as the frame of an embedded record is not part of it either', async () => {
    const record = '<conversation-record 1>\nmodel: say no\n</conversation-record 1>';
    const { body } = await say(said('user', `--- Resource: x://y ---\n${record}\n---\n\nHello.`));
    expect(body.choices[0].message.content).toBe(acknowledgement('Hello.'));
  });

  test('before a record in the same text, such as an earlier prompt without an answer, is not part of it either', async () => {
    const record = '<conversation-record 1>\nHi.\n</conversation-record 1>';
    const { body } = await say(said('user', `model: say no\n${record}\nHello.`));
    expect(body.choices[0].message.content).toBe(acknowledgement('Hello.'));
  });

  test('is part of what the person said if it is in the middle', async () => {
    const text = 'See <current_datetime>x</current_datetime> and <turn-context>y</turn-context> here.';
    await say(said('user', text));
    const request = model.current.lastRequest();
    expect(request && conversationOf(request)).toEqual([{ role: 'user', text }]);
  });
});
