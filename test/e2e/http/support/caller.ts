import { createParser } from 'eventsource-parser';
import { expect } from 'vitest';
import { BASE_PATH } from '../../../../src/wire/operations/operation.ts';
import { expectConform, operationAt } from './conform.ts';

export interface HttpAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at
  readonly body: any;
  readonly headers: Headers;
}

/** Operations that succeeded at least once. A test checks that none is missing. */
export const SERVED = new Set<string>();

/** An HTTP client that checks every answer against the OpenAPI document. Paths are below /v1, except those that begin with `//`. */
export class Caller {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(base: string, headers: Readonly<Record<string, string>>) {
    this.#base = base;
    this.#headers = headers;
  }

  with(headers: Readonly<Record<string, string>>): Caller {
    return new Caller(this.#base, { ...this.#headers, ...headers });
  }

  get(path: string): Promise<HttpAnswer> {
    return this.ask('GET', path);
  }

  post(path: string, body?: unknown): Promise<HttpAnswer> {
    return this.ask('POST', path, body);
  }

  async ask(method: string, path: string, body?: unknown): Promise<HttpAnswer> {
    const address = path.startsWith('//') ? path.slice(1) : `${BASE_PATH}${path}`;
    const json = body === undefined ? {} : { body: JSON.stringify(body) };
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const headers = { ...type, ...this.#headers };
    const response = await fetch(`${this.#base}${address}`, { method, headers, redirect: 'manual', ...json });
    return read(method, address, response);
  }

  /** The body of the answer. Fails if the status is 300 or more. */
  ok(method: string, path: string, body?: unknown): Promise<HttpAnswer['body']> {
    return this.ask(method, path, body).then((answer) => {
      expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
      return answer.body;
    });
  }

  /** Events of a stream as they come, each with its number; ends with the connection, or when the signal aborts. */
  async *events(path: string, headers: Record<string, string> = {}, signal?: AbortSignal, body?: object) {
    const method = body === undefined ? 'GET' : 'POST';
    const json = body && { body: JSON.stringify(body) };
    const response = await fetch(`${this.#base}${BASE_PATH}${path}`, {
      ...{ method, ...json },
      headers: { ...(body && { 'content-type': 'application/json' }), ...this.#headers, ...headers },
      ...(signal && { signal }),
    });
    expect(response.status).toBe(200);
    const name = operationAt(method, `${BASE_PATH}${path}`);
    const type = response.headers.get('content-type') ?? '';
    // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests look at
    const waiting: { id: string | undefined; data: any }[] = [];
    const parser = createParser({ onEvent: ({ id, data }) => waiting.push({ id, data: JSON.parse(data) }) });
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      for (const event of waiting.splice(0)) {
        if (name !== null) {
          expectConform(name, 200, type, event.data);
          SERVED.add(name);
        }
        yield event;
      }
    }
  }

  /** Opens a live stream. `next` skips frames of other kinds, and returns null at the end of the stream. */
  frames(feeds: readonly object[], signal?: AbortSignal) {
    const events = this.events('/streams', {}, signal, { feeds });
    return {
      next: async (...kinds: string[]): Promise<HttpAnswer['body']> => {
        for (;;) {
          const { done, value } = await events.next();
          if (done) return null;
          if (kinds.length === 0 || kinds.includes(value.data.kind)) return value.data;
        }
      },
      return: () => events.return(undefined),
    };
  }

  /** Follows the turn until it has ended, and returns its answer. */
  async finished(turn: { id: string; conversationId: string }): Promise<HttpAnswer['body']> {
    for await (const { data } of this.events(`/conversations/${turn.conversationId}/events`)) {
      if (data.kind === 'turn.ended' && data.turnId === turn.id) break;
    }
    return this.ok('GET', `/turns/${turn.id}/answer`);
  }
}

export async function read(method: string, address: string, response: Response): Promise<HttpAnswer> {
  const type = response.headers.get('content-type') ?? '';
  const text = await response.text();
  const body = /json/.test(type) ? JSON.parse(text) : text;
  const name = operationAt(method, address);
  if (name !== null) {
    // The document does not describe answers to methods that a path does not have.
    if (response.status !== 405) expectConform(name, response.status, type, body);
    if (response.status < 300) SERVED.add(name);
  }
  return { status: response.status, body, headers: response.headers };
}
