import { describe, expect, test } from 'vitest';
import { acknowledgement, codewordsIn, conversationOf } from '../../src/testing/index.ts';
import { modelForTests, post, stream } from './speaking.ts';

const model = modelForTests();
const MODEL = '/v1beta/models/gemini-x';
const [WHOLE, STREAM] = [`${MODEL}:generateContent`, `${MODEL}:streamGenerateContent?alt=sse`];
const SHELL = { functionDeclarations: [{ name: 'shell', parametersJsonSchema: { type: 'object' } }] };
const said = (role: string, ...parts: object[]) => ({ role, parts });
const asked = (...contents: object[]) => ({ tools: [SHELL, { googleSearch: {} }], contents });
const prompt = (text: string) => asked(said('user', { text }));

describe('Gemini generateContent', () => {
  const CALL = prompt('model: say Calling.\nmodel: tool shell {"command":"ls"}');

  test('a streamed answer contains the same as a whole one', async () => {
    const { body } = await post(model.current, WHOLE, CALL);
    const { events, whole } = await stream(model.current, STREAM, CALL);
    expect(whole).toBe(true);
    const parts = events.flatMap(({ data }) => data.candidates[0].content.parts);
    const [text, call] = body.candidates[0].content.parts;
    expect(parts.map((part) => part.text ?? '').join('')).toBe(text.text);
    expect(parts.flatMap(({ functionCall }) => functionCall ?? [])).toMatchObject([
      { name: call.functionCall.name, args: { command: 'ls' } },
    ]);
    const reasons = events.map(({ data }) => data.candidates[0].finishReason);
    expect(reasons).toEqual([...reasons.slice(0, -1).fill(undefined), body.candidates[0].finishReason]);
    const { promptTokenCount, candidatesTokenCount, totalTokenCount } = events.at(-1)?.data.usageMetadata ?? {};
    expect(candidatesTokenCount).toBe(body.usageMetadata.candidatesTokenCount);
    expect(totalTokenCount).toBe(promptTokenCount + candidatesTokenCount);
  });

  test('roles, tools and their results are read from the parts', async () => {
    const { body } = await post(model.current, WHOLE, {
      ...asked(
        said('user', { text: '<session_context>\nThe project.\n</session_context>' }),
        said('user', { text: 'The codeword is birch. Which codewords have you seen?\nmodel: tool shell {}' }),
        said(
          'model',
          { text: 'The codeword is thought.', thought: true },
          { functionCall: { id: 'a', name: 'shell', args: { n: 1 } } },
          { functionCall: { name: 'shell', args: {} } },
        ),
        said(
          'user',
          { functionResponse: { id: 'a', name: 'shell', response: { output: 'The codeword is cedar.' } } },
          { functionResponse: { name: 'shell', response: { error: 'no' } } },
        ),
      ),
      systemInstruction: said('user', { text: 'The codeword is ash.' }),
    });
    expect(body.candidates[0].content.parts).toEqual([{ text: 'I have seen these codewords: birch, cedar.' }]);
    const request = model.current.lastRequest();
    expect(request).toMatchObject({ api: 'gemini', model: 'gemini-x', path: WHOLE, system: 'The codeword is ash.' });
    expect(request?.tools).toEqual(['shell', 'googleSearch']);
    expect(request?.messages.map(({ role }) => role).join()).toBe('user,user,assistant,user');
    expect(request?.messages[2]?.toolUses).toEqual([
      { id: 'a', name: 'shell', input: { n: 1 } },
      { id: 'shell', name: 'shell', input: {} },
    ]);
    expect(request?.messages[3]?.toolResults).toEqual([
      { id: 'a', text: 'The codeword is cedar.', isError: false },
      { id: 'shell', text: 'no', isError: true },
    ]);
    expect(request && codewordsIn(request)).toEqual(['birch', 'cedar']);
    expect(request && conversationOf(request)).toHaveLength(1);
  });

  test('countTokens gives the same number as the answer', async () => {
    const { body } = await post(model.current, `${MODEL}:countTokens`, prompt('Hi.'));
    const answer = await post(model.current, WHOLE, prompt('Hi.'));
    expect(answer.body.usageMetadata.promptTokenCount).toBe(body.totalTokens);
    expect(body.totalTokens).toBe(Math.ceil(JSON.stringify(prompt('Hi.')).length / 4));
  });

  test.each([
    [429, 'RESOURCE_EXHAUSTED'],
    [500, 'INTERNAL'],
    [529, 'UNAVAILABLE'],
  ])('fails with %i as Gemini does, also if a stream was requested', async (code, status) => {
    const answer = await post(model.current, STREAM, prompt(`model: fail ${code}`));
    expect(answer).toEqual({ status: code, body: { error: { code, message: 'failed as asked', status } } });
  });

  test('a prompt that is too long is refused in the words of Gemini', async () => {
    const { status, body } = await post(model.current, STREAM, prompt('model: too-long'));
    expect([status, body.error.status]).toEqual([400, 'INVALID_ARGUMENT']);
    expect(body.error.message).toContain('input token count (200001) exceeds the maximum');
  });

  test('a stream that is broken off has half of the text, and no finish reason', async () => {
    const { events, whole } = await stream(model.current, STREAM, prompt('model: stream 4 1ms\nmodel: break'));
    expect(whole).toBe(false);
    expect(events.at(-1)?.data.candidates[0]).toEqual({
      index: 0,
      content: { role: 'model', parts: [{ text: 'chunk 2 ' }] },
    });
    expect(model.current.requests.at(-1)?.answer).toMatchObject({ broken: true, usage: null });
  });

  test('a side call gets an answer in the requested form, and follows no directives', async () => {
    const responseJsonSchema = { type: 'OBJECT', properties: { why: { type: 'STRING' }, score: { type: 'INTEGER' } } };
    const generationConfig = { responseMimeType: 'application/json', responseJsonSchema };
    const { contents } = prompt('model: fail 500');
    const { body } = await post(model.current, WHOLE, { contents, generationConfig });
    expect(JSON.parse(body.candidates[0].content.parts[0].text)).toEqual({ why: 'a-conversation', score: 0 });
    expect(model.current.requests.at(-1)?.side).toBe(true);
  });

  test('a stream in another format than SSE is not found, and recorded', async () => {
    const answer = await post(model.current, `${MODEL}:streamGenerateContent`, prompt('Hi.'));
    expect(answer.status).toBe(404);
    expect(model.current.others.at(-1)).toBe(`POST ${MODEL}:streamGenerateContent`);
  });

  test('anything else is acknowledged', async () => {
    const { body } = await post(model.current, WHOLE, prompt('Hello.'));
    expect(body.candidates[0].content.parts).toEqual([{ text: acknowledgement('Hello.') }]);
  });
});
