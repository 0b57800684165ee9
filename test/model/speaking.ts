// Sends requests to the stand-in directly, without an agent.
import { afterAll, beforeAll } from 'vitest';
import { type Model, startModel } from '../../src/testing/index.ts';

/** A stand-in for all tests of a file. */
export function modelForTests(): { readonly current: Model } {
  let model: Model | undefined;
  beforeAll(async () => {
    model = await startModel();
  });
  afterAll(() => model?.close());
  return {
    get current() {
      if (!model) throw new Error('the stand-in is started before the tests; use it only in them');
      return model;
    },
  };
}

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  readonly body: any;
}

export async function post(model: Model, path: string, body: object): Promise<Answer> {
  const response = await fetch(`${model.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
}

export interface Event {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  readonly data: any;
}

/** The events that arrived, and whether the stream came to its end. */
export async function stream(
  model: Model,
  path: string,
  body: object,
): Promise<{ events: Event[]; whole: boolean; status: number }> {
  const init = { method: 'POST', body: JSON.stringify({ ...body, stream: true }) };
  const response = await fetch(`${model.url}${path}`, init);
  let text = '';
  let whole = true;
  try {
    for await (const bytes of response.body ?? []) text += Buffer.from(bytes).toString();
  } catch {
    whole = false;
  }
  return { events: text.split('\n\n').flatMap(eventOf), whole, status: response.status };
}

function eventOf(frame: string): Event[] {
  const match = /^(?:event: (.*)\n)?data: (.*)$/.exec(frame);
  if (!match) return [];
  const [, event = '', data = ''] = match;
  return [{ event, data: data === '[DONE]' ? data : JSON.parse(data) }];
}

export const user = (...texts: string[]) => ({
  role: 'user',
  content: texts.map((text) => ({ type: 'text', text })),
});
export const assistant = (text: string) => ({ role: 'assistant', content: [{ type: 'text', text }] });
export const BASH = { name: 'Bash', input_schema: { type: 'object' } };

/** A request as Claude sends it, without what does not matter here. */
export function messages(...list: object[]): { model: string; tools: object[]; messages: object[] } {
  return { model: 'claude-test', tools: [BASH], messages: list };
}
