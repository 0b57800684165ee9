import { describe, expect, test } from 'vitest';
import { acknowledgement } from '../../src/testing/index.ts';
import { assistant, BASH, messages, modelForTests, post, stream, user } from './speaking.ts';

const model = modelForTests();
const say = (body: object) => post(model.current, '/v1/messages', body);
const result = (n: number) => ({ type: 'tool_result', tool_use_id: `toolu_${n}`, content: 'done' });
const use = (n: number) => ({ type: 'tool_use', id: `toolu_${n}`, name: 'Bash', input: {} });

test('say answers with its text', async () => {
  const { body } = await say(messages(user('Please.\n  model: say one\nmodel: say two')));
  expect(body.content).toEqual([{ type: 'text', text: 'onetwo' }]);
});

test('a malformed directive is reported in the answer', async () => {
  const { body } = await say(messages(user('model: tool Bash {"command"')));
  expect(body.content[0].text).toBe('Unknown directive: tool Bash {"command"');
});

describe('tool', () => {
  const prompt = user(
    'model: say first\nmodel: tool Bash {"command":"a"}\nmodel: tool Bash {"command":"b"}\nmodel: say end',
  );

  test('is called after each result in the request, and then the rest is said', async () => {
    const first = await say(messages(prompt));
    expect(first.body.stop_reason).toBe('tool_use');
    expect(first.body.content).toMatchObject([{ text: 'first' }, { name: 'Bash', input: { command: 'a' } }]);
    const called = [
      { role: 'assistant', content: [use(1)] },
      { role: 'user', content: [result(1)] },
    ];
    const second = await say(messages(prompt, ...called));
    expect(second.body.content).toMatchObject([{ name: 'Bash', input: { command: 'b' } }]);
    const third = await say(messages(prompt, ...called, ...called));
    expect(third.body).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'end' }] });
  });

  test('with nothing left to say, the prompt is answered as if there had been no directive', async () => {
    const asked = 'model: tool Bash {}\nWhich codewords have you seen?';
    const found = { ...result(1), content: [{ type: 'text', text: 'The codeword is amber.' }] };
    const { body } = await say(messages(user(asked), assistant('Calling.'), { role: 'user', content: [found] }));
    expect(body.content[0].text).toBe('I have seen these codewords: amber.');
  });

  test('is not called if it is not offered, unless the directive forces it', async () => {
    const without = { ...messages(user('model: tool Write {}')), tools: [BASH] };
    expect((await say(without)).body.content).toEqual([{ type: 'text', text: 'I have no tool Write here.' }]);
    const { body } = await say({ ...messages(user('model: tool! Write {}')), tools: [] });
    expect(body.content).toMatchObject([{ type: 'tool_use', name: 'Write', input: {} }]);
  });
});

describe('directives count only', () => {
  const quiet = async (...list: object[]) => (await say(messages(...list))).body.content[0].text;

  test.each<[string, ...object[]]>([
    ['an earlier prompt', user('model: say no'), assistant('Yes.'), user('Hello.')],
    ['an earlier prompt in the same message', user('model: say no', 'Hello.')],
    ['an answer', user('Hi.'), assistant('model: say no'), user('Hello.')],
    ['a conversation record', user('<conversation-record 1>\nmodel: say no\n</conversation-record 1>\n\nHello.')],
    ['a reminder after the prompt', user('Hello.', '<system-reminder>\nmodel: say no\n</system-reminder>')],
    [
      'an attached record',
      user(
        'Hello.',
        '<context ref="x">\n<conversation-record 2>\n</context>\nmodel: say no\n</conversation-record 2>\n</context>',
      ),
    ],
  ])('in what the person said last, not in %s', async (_where, ...list) => {
    expect(await quiet(...list)).toBe(acknowledgement('Hello.'));
  });

  test('in what the person said, not in a tool result', async () => {
    const found = { ...result(1), content: 'model: say no' };
    expect(await quiet(user('Hello.'), { role: 'user', content: [found] })).toBe(acknowledgement('Hello.'));
  });
});

describe('fail', () => {
  test.each([
    [429, 'rate_limit_error'],
    [500, 'api_error'],
    [529, 'overloaded_error'],
  ])('answers %i', async (status, type) => {
    const answer = await say(messages(user(`model: fail ${status}`)));
    expect(answer).toEqual({ status, body: { type: 'error', error: { type, message: 'failed as asked' } } });
  });

  test('"N times" is counted by the text of the line, over all requests', async () => {
    const statuses = async (line: string) => (await say(messages(user(`${line}\nHello.`)))).status;
    const line = 'model: fail 529 2 times';
    expect([await statuses(line), await statuses(line), await statuses(line)]).toEqual([529, 529, 200]);
    expect(await statuses(`${line} #other`)).toBe(529);
  });
});

test('slow "1 times" waits only the first time', async () => {
  const line = 'model: slow 600000ms 1 times';
  void say(messages(user(line))).catch(() => {}); // ends with the model
  await expect.poll(() => model.current.requests.at(-1)?.messages.at(-1)?.text).toBe(line);
  expect((await say(messages(user(line)))).status).toBe(200);
});

test('slow waits, and stream sends its pieces one by one', async () => {
  const start = performance.now();
  const { events } = await stream(
    model.current,
    '/v1/messages',
    messages(user('model: slow 100ms\nmodel: stream 4 50ms')),
  );
  expect(performance.now() - start).toBeGreaterThan(240);
  const pieces = events.flatMap(({ data }) => data.delta?.text ?? []);
  expect(pieces).toEqual(['chunk 1 ', 'chunk 2 ', 'chunk 3 ', 'chunk 4 ']);
});

test('stream "1 times" is left out the second time', async () => {
  const prompt = messages(user('model: stream 2 1ms 1 times\nmodel: say Then this.'));
  const said = async () => {
    const { events } = await stream(model.current, '/v1/messages', prompt);
    return events.map(({ data }) => data.delta?.text ?? '').join('');
  };
  expect([await said(), await said()]).toEqual(['chunk 1 chunk 2 Then this.', 'Then this.']);
});

describe('break', () => {
  const prompt = messages(user('model: stream 4 1ms\nmodel: break 1 times'));

  test('ends the stream in the middle of the text, without usage', async () => {
    const before = model.current.served.answers;
    const { events, whole } = await stream(model.current, '/v1/messages', prompt);
    expect(whole).toBe(false);
    expect(events.at(-1)?.data.delta.text).toBe('chunk 2 ');
    expect(model.current.requests.at(-1)?.answer).toMatchObject({ broken: true, usage: null });
    expect(model.current.served.answers).toBe(before);
    expect((await stream(model.current, '/v1/messages', prompt)).whole).toBe(true);
  });

  test('also ends an answer that is not streamed in the middle', async () => {
    await expect(say(messages(user('model: break')))).rejects.toThrow();
  });
});

test('too-long refuses in the words of the real model', async () => {
  const { status, body } = await say(messages(user('model: too-long')));
  expect(status).toBe(400);
  expect(body.error.message).toBe('prompt is too long: 200001 tokens > 200000 maximum');
});
