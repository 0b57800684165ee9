import { describe, expect, test } from 'vitest';
import { acknowledgement, conversationOf, startModel } from '../../src/testing/index.ts';
import { assistant, messages, modelForTests, post, user } from './speaking.ts';

const model = modelForTests();
const QUESTION = 'Which codewords have you seen?';

/** The text of the answer to a request. */
async function ask(...list: object[]): Promise<string> {
  const { body } = await post(model.current, '/v1/messages', messages(...list));
  return body.content.map((block: { text?: string }) => block.text ?? '').join('');
}

describe('the stand-in answers with', () => {
  test('every codeword in the request, in order and once each, whoever said it', async () => {
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'codeword: cedar' };
    const answer = await ask(
      user('The codeword is amber.'),
      assistant('The codeword is birch-2.'),
      { role: 'user', content: [result] },
      user('The codeword is amber. The codeword is dawn.', QUESTION),
    );
    expect(answer).toBe('I have seen these codewords: amber, birch-2, cedar, dawn.');
  });

  test('the codewords of a conversation record in the request', async () => {
    const record = '<conversation-record 7f>\n[turn 1] person:\nThe codeword is amber.\n</conversation-record 7f>';
    expect(await ask(user(record, QUESTION))).toBe('I have seen these codewords: amber.');
  });

  test('nothing from the system prompt, wherever it is', async () => {
    const body = messages(user(QUESTION), { role: 'system', content: 'The codeword is birch.' });
    const said = await post(model.current, '/v1/messages', { ...body, system: 'The codeword is amber.' });
    expect(said.body.content[0].text).toBe('I have seen no codewords.');
    expect(model.current.systemTexts()).toContain('The codeword is amber.\nThe codeword is birch.');
  });

  test('nothing that a directive only mentions', async () => {
    const prompt = 'model: say The codeword is amber.';
    expect(await ask(user(prompt), user(QUESTION))).toBe('I have seen no codewords.');
    expect(await ask(user(prompt), assistant('The codeword is amber.'), user(QUESTION))).toContain('amber');
  });

  test('nothing from earlier requests', async () => {
    await ask(user('The codeword is amber.'));
    expect(await ask(user(QUESTION))).toBe('I have seen no codewords.');
  });
});

describe('anything else is acknowledged', () => {
  test('differently for different prompts, without repeating them', async () => {
    const answer = await ask(user('The codeword is amber.'));
    expect(answer).toBe(acknowledgement('The codeword is amber.'));
    expect(answer).not.toBe(await ask(user('The codeword is birch.')));
    expect(answer).not.toContain('amber');
  });

  test('and a request to summarise keeps the codewords', async () => {
    const task = 'Your task is to create a detailed summary of the conversation so far.';
    const summary = await ask(user('The codeword is amber.'), assistant('Yes.'), user(task));
    expect(await ask(user(summary), user(QUESTION))).toBe('I have seen these codewords: amber.');
  });
});

describe('a side call', () => {
  const title = { model: 'claude-haiku', messages: [user('The codeword is amber.\nmodel: fail 500')] };

  test('is marked, answered, and follows no directive', async () => {
    const { status } = await post(model.current, '/v1/messages', title);
    expect(status).toBe(200);
    expect(model.current.requests.at(-1)?.side).toBe(true);
    expect(model.current.lastRequest()?.side).toBe(false);
  });

  test('does not count for a directive with a number of times', async () => {
    const failing = user('model: fail 500 1 times #side');
    await post(model.current, '/v1/messages', { ...title, messages: [failing] });
    expect((await post(model.current, '/v1/messages', messages(failing))).status).toBe(500);
  });

  test.each([
    'Generate a concise title for this conversation.',
    'You are naming a coding session so the user can pick it out of a long list of sessions.',
  ])('is also recognised by its instruction, and answered in the requested form: %s', async (system) => {
    const schema = { type: 'object', properties: { title: { type: 'string' }, isNew: { type: 'boolean' } } };
    const { body } = await post(model.current, '/v1/messages', {
      ...title,
      model: 'claude-test',
      system,
      output_config: { format: { type: 'json_schema', schema } },
    });
    expect(JSON.parse(body.content[0].text)).toEqual({ title: 'a-conversation', isNew: false });
  });

  test('is not assumed for a session without tools', async () => {
    await post(model.current, '/v1/messages', { ...messages(user('Hello.')), tools: [] });
    expect(model.current.requests.at(-1)?.side).toBe(false);
  });
});

test('a request beyond the window is refused as by the real model', async () => {
  const small = await startModel({ window: 1_000 });
  try {
    const fits = await post(small, '/v1/messages', messages(user('x'.repeat(3_000))));
    const { status, body } = await post(small, '/v1/messages', messages(user('x'.repeat(5_000))));
    expect([fits.status, status]).toEqual([200, 400]);
    expect(body.error).toEqual({
      type: 'invalid_request_error',
      message: expect.stringMatching(/^prompt is too long: \d+ tokens > 1000 maximum$/),
    });
  } finally {
    await small.close();
  }
});

test('a stand-in that keeps only the last requests still numbers and counts all of them', async () => {
  const small = await startModel({ keep: 2 });
  try {
    for (const text of ['one', 'two', 'three']) {
      await post(small, '/v1/messages', messages(user(text)));
      await fetch(`${small.url}/api/${text}`);
    }
    await expect.poll(() => small.others).toEqual(['GET /api/two', 'GET /api/three']);
    const said = small.requests.map((request) => conversationOf(request).map(({ text }) => text));
    expect(said).toEqual([['two'], ['three']]);
    await post(small, '/v1/messages', messages(user('four')));
    expect(small.requests.at(-1)?.n).toBe(4);
    expect(small.served.answers).toBe(4);
  } finally {
    await small.close();
  }
});
