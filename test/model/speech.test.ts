import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { codewordsIn, conversationOf, startModel } from '../../src/testing/index.ts';
import { assistant, messages, modelForTests, post, stream, user } from './speaking.ts';

const model = modelForTests();

describe('Anthropic Messages', () => {
  const TOOL = 'model: say Calling.\nmodel: tool Bash {"command":"ls"}';

  test('a streamed answer contains the same as a whole one', async () => {
    const { body } = await post(model.current, '/v1/messages?beta=true', messages(user(TOOL)));
    const { events } = await stream(model.current, '/v1/messages?beta=true', messages(user(TOOL)));
    expect(events.map(({ event, data }) => [event, data.index ?? null])).toEqual([
      ['message_start', null],
      ['content_block_start', 0],
      ['content_block_delta', 0],
      ['content_block_stop', 0],
      ['content_block_start', 1],
      ['content_block_delta', 1],
      ['content_block_stop', 1],
      ['message_delta', null],
      ['message_stop', null],
    ]);
    expect(events.every(({ event, data }) => data.type === event)).toBe(true);
    const deltas = events.flatMap(({ data }) => data.delta?.text ?? data.delta?.partial_json ?? []);
    expect(deltas).toEqual([body.content[0].text, JSON.stringify(body.content[1].input)]);
    expect(events[7]?.data.delta.stop_reason).toBe(body.stop_reason);
    expect(events[7]?.data.usage.output_tokens).toBe(body.usage.output_tokens);
  });

  test('ids are unique', async () => {
    const ids = await Promise.all([1, 2, 3].map(() => post(model.current, '/v1/messages', messages(user('Hi.')))));
    expect(new Set(ids.map(({ body }) => body.id)).size).toBe(3);
    expect(ids[0]?.body.id).toMatch(/^msg_\w+$/);
  });

  test('count_tokens gives the same number as the answer', async () => {
    const asked = messages(user('Hi.'));
    const { body } = await post(model.current, '/v1/messages/count_tokens', asked);
    const answer = await post(model.current, '/v1/messages', asked);
    expect(answer.body.usage.input_tokens).toBe(body.input_tokens);
    expect(body.input_tokens).toBe(Math.ceil(JSON.stringify(asked).length / 4));
  });
});

describe('OpenAI Responses', () => {
  const SHELL = { type: 'function', name: 'shell' };
  const said = (role: string, text: string) => ({ type: 'message', role, content: [{ type: 'input_text', text }] });
  const asked = (...input: object[]) => ({ model: 'm', instructions: 'Be good.', tools: [SHELL], input });

  test('a streamed answer contains the same as a whole one', async () => {
    const request = asked(said('user', 'model: say Calling.\nmodel: tool shell {"command":["ls"]}'));
    const { body } = await post(model.current, '/v1/responses', request);
    const { events } = await stream(model.current, '/v1/responses', request);
    expect(events.map(({ data }) => data.sequence_number)).toEqual(events.map((_, n) => n));
    expect(events.map(({ event }) => event.replace('response.', ''))).toEqual([
      ...['created', 'in_progress', 'output_item.added', 'content_part.added', 'output_text.delta'],
      ...['output_text.done', 'content_part.done', 'output_item.done', 'output_item.added'],
      ...['function_call_arguments.delta', 'function_call_arguments.done', 'output_item.done', 'completed'],
    ]);
    const { response } = events.at(-1)?.data ?? {};
    expect(response.status).toBe('completed');
    expect(response.output[0].content).toEqual(body.output[0].content);
    expect(response.output[1].arguments).toBe('{"command":["ls"]}');
    expect(response.usage.total_tokens).toBe(response.usage.input_tokens + response.usage.output_tokens);
  });

  test('roles, tools and their results are read from the items', async () => {
    const { body } = await post(
      model.current,
      '/v1/responses',
      asked(
        said('developer', 'The codeword is ash.'),
        said('user', '<environment_context>\n  <cwd>x</cwd>\n</environment_context>'),
        said('user', 'The codeword is birch. Which codewords have you seen?\nmodel: tool shell {}'),
        { type: 'reasoning', summary: [] },
        { type: 'function_call', call_id: 'call_1', name: 'shell', arguments: '{"a":1}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'The codeword is cedar.' },
      ),
    );
    expect(body.output[0].content[0].text).toBe('I have seen these codewords: birch, cedar.');
    const request = model.current.lastRequest();
    expect(request).toMatchObject({
      api: 'openai-responses',
      system: 'Be good.\nThe codeword is ash.',
      tools: ['shell'],
    });
    expect(request?.messages[3]?.toolUses).toEqual([{ id: 'call_1', name: 'shell', input: { a: 1 } }]);
    expect(request?.messages[4]?.toolResults).toEqual([
      { id: 'call_1', text: 'The codeword is cedar.', isError: false },
    ]);
    expect(request && conversationOf(request)).toHaveLength(1);
  });

  test('a plain text input is a prompt, and a tool that takes plain text is called with it', async () => {
    const request = {
      model: 'm',
      tools: [{ type: 'custom', name: 'apply_patch' }],
      input: 'model: tool apply_patch "x"',
    };
    const { body } = await post(model.current, '/v1/responses', request);
    expect(body.output).toMatchObject([{ type: 'custom_tool_call', name: 'apply_patch', input: 'x' }]);
  });

  test('a prompt that is too long fails inside of the stream', async () => {
    const { events, status } = await stream(model.current, '/v1/responses', asked(said('user', 'model: too-long')));
    expect(status).toBe(200);
    expect(events.at(-1)).toMatchObject({
      event: 'response.failed',
      data: { response: { error: { code: 'context_length_exceeded' } } },
    });
  });
});

describe('the record of requests', () => {
  test('has roles, texts, tools and results in their order', async () => {
    const one = await startModel();
    try {
      const use = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } };
      const result = { type: 'tool_result', tool_use_id: 'toolu_1', is_error: true, content: 'codeword: dawn' };
      const list = [
        user('<system-reminder>\nBe brief.\n</system-reminder>', 'The codeword is amber.'),
        { role: 'system', content: 'Be kind.' },
        { role: 'assistant', content: [{ type: 'text', text: 'I look.' }, use] },
        { role: 'user', content: [result] },
        assistant('Seen.'),
        user('And now?'),
      ];
      await post(one, '/v1/messages', { ...messages(...list), system: [{ type: 'text', text: 'Be good.' }] });
      const [request] = one.requests;
      expect(request).toMatchObject({ n: 1, path: '/v1/messages', api: 'anthropic', system: 'Be good.\nBe kind.' });
      expect(request?.messages.map(({ role }) => role).join()).toBe('user,system,assistant,user,assistant,user');
      expect(request?.messages[2]?.toolUses).toEqual([{ id: 'toolu_1', name: 'Bash', input: { command: 'ls' } }]);
      expect(request?.messages[3]?.toolResults).toEqual([{ id: 'toolu_1', text: 'codeword: dawn', isError: true }]);
      expect(request && codewordsIn(request)).toEqual(['amber', 'dawn']);
      expect(request && conversationOf(request)).toEqual([
        { role: 'user', text: 'The codeword is amber.' },
        { role: 'assistant', text: 'I look.' },
        { role: 'assistant', text: 'Seen.' },
        { role: 'user', text: 'And now?' },
      ]);
      expect(one.served).toEqual({ answers: 1, ...request?.answer?.usage });
      expect(one.lastRequest(({ model }) => model === 'unheard-of')).toBeUndefined();
    } finally {
      await one.close();
    }
  });

  test('also has requests with compressed bodies', async () => {
    const bytes = Buffer.from(JSON.stringify(messages(user('model: say unpacked'))));
    for (const [encoding, body] of [
      ['gzip', gzipSync(bytes)],
      ['zstd', zstdCompressSync(bytes)],
    ] as const) {
      const init = { method: 'POST', headers: { 'content-encoding': encoding }, body };
      const answer = (await (await fetch(`${model.current.url}/v1/messages`, init)).json()) as { content: unknown };
      expect(answer.content).toEqual([{ type: 'text', text: 'unpacked' }]);
    }
  });
});

describe('the server', () => {
  test('answers probes, lists a model, and records unknown requests', async () => {
    const { url, others } = model.current;
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
    expect(await (await fetch(`${url}/v1/models?limit=9`)).json()).toMatchObject({ data: [{ id: 'stand-in' }] });
    expect(await (await fetch(`${url}/v1beta/models`)).json()).toMatchObject({ models: [{ name: 'models/stand-in' }] });
    expect((await fetch(`${url}/api/hello`)).status).toBe(404);
    expect(others.slice(-4)).toEqual(['HEAD /', 'GET /v1/models?limit=9', 'GET /v1beta/models', 'GET /api/hello']);
  });

  test('refuses a body that is not a JSON object', async () => {
    const response = await fetch(`${model.current.url}/v1/messages`, { method: 'POST', body: '[1' });
    expect(response.status).toBe(400);
  });

  test('can be closed while it answers', async () => {
    const one = await startModel();
    const answer = post(one, '/v1/messages', messages(user('model: slow 60000ms'))).catch((error: Error) => error);
    while (one.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await one.close();
    expect(await answer).toBeInstanceOf(Error);
    expect(one.requests[0]?.answer).toMatchObject({ broken: true, usage: null });
  });
});
