import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isObject } from '../core/turn/content.ts';
import { type AnswerContext, answerRequest, tokensIn } from './answer.ts';
import { type Api, jsonOrText } from './api.ts';
import { anthropicMessages } from './apis/anthropic.ts';
import { geminiGenerateContent } from './apis/gemini.ts';
import { openaiChat } from './apis/openai-chat.ts';
import { openaiResponses } from './apis/openai-responses.ts';
import { bodyOf, sendJson } from './connection.ts';
import type { ModelRequest, ModelUsage } from './request.ts';

/**
 * A stand-in for a model: a local server that real agents use instead of the real one. It is stateless and answers only from the
 * request, so a right answer about an earlier turn proves that the turn arrived.
 *
 * @example
 * import { type Model, startModel } from 'throughline/testing';
 *
 * const model: Model = await startModel();
 * const environment = { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'sk-fake' };
 * await model.close();
 */
export interface Model {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly url: string;
  /** The requests, in order. Side calls of agents are included and marked. */
  readonly requests: readonly ModelRequest[];
  /** All other requests, as `METHOD /path`. */
  readonly others: readonly string[];
  /** The usage of all complete answers, also of requests that are not kept. */
  readonly served: ModelUsage & { readonly answers: number };
  /** The newest request that is no side call; with a filter, the newest for which it is true. */
  lastRequest(filter?: (request: ModelRequest) => boolean): ModelRequest | undefined;
  /** The instructions of every request, each text once. */
  systemTexts(): string[];
  /** Ends all running answers, and waits until that is recorded. */
  close(): Promise<void>;
}

/**
 * How the stand-in behaves.
 *
 * @example
 * import { startModel } from 'throughline/testing';
 *
 * const model = await startModel({ window: 50_000, keep: 100 });
 */
export interface ModelOptions {
  /** Requests with more tokens, by estimate, are refused as too long. Default: no limit. */
  readonly window?: number | undefined;
  /** Default: any that is free. */
  readonly port?: number | undefined;
  /** How many are kept of `requests`, and of `others`; the oldest are removed. Default: all are kept. */
  readonly keep?: number | undefined;
}

const APIS: readonly Api[] = [anthropicMessages, openaiResponses, openaiChat, geminiGenerateContent];

/**
 * Starts the stand-in on a free port of this machine.
 *
 * @example
 * import { codewordsIn, startModel } from 'throughline/testing';
 *
 * const model = await startModel();
 * // … prompt an agent that talks to model.url …
 * const request = model.lastRequest();
 * if (request) console.log(codewordsIn(request));
 * await model.close();
 */
export async function startModel(options: ModelOptions = {}): Promise<Model> {
  const { keep = Number.POSITIVE_INFINITY } = options;
  const requests: ModelRequest[] = [];
  const others: string[] = [];
  const seen = new Map<string, number>();
  const underWay = new Set<Promise<void>>();
  const context: AnswerContext = {
    window: options.window ?? Number.POSITIVE_INFINITY,
    count(line) {
      const before = seen.get(line) ?? 0;
      seen.set(line, before + 1);
      return before;
    },
    requests,
    served: { answers: 0, inputTokens: 0, outputTokens: 0 },
  };

  const server = createServer((incoming, response) => {
    const answered = handle(incoming, response, context, others).catch((error) => {
      // A bug in here has to show in the agent's output, which the test reads.
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: { message: String(error) } });
    });
    underWay.add(answered);
    answered.finally(() => {
      underWay.delete(answered);
      for (const kept of [requests, others]) kept.splice(0, Math.max(0, kept.length - keep));
    });
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    others,
    get served() {
      return { ...context.served };
    },
    lastRequest: (filter = ({ side }) => !side) => requests.findLast(filter),
    systemTexts: () => [...new Set(requests.map(({ system }) => system).filter(Boolean))],
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await Promise.all([closed, ...underWay]);
    },
  };
}

async function handle(incoming: IncomingMessage, response: ServerResponse, context: AnswerContext, others: string[]) {
  const path = incoming.url ?? '/';
  const [route = '/'] = path.split('?');
  const api = APIS.find((one) => one.path.test(path));
  if (incoming.method === 'POST' && api) {
    const bytes = await bodyOf(incoming);
    const raw = jsonOrText(bytes.toString());
    if (!isObject(raw)) {
      return sendJson(
        response,
        400,
        api.failure({ status: 400, message: 'the body is not a JSON object', tooLong: null }),
      );
    }
    return answerRequest({ api, path, raw, inputTokens: tokensIn(bytes.length) }, response, context);
  }
  others.push(`${incoming.method} ${path}`);
  const bytes = await bodyOf(incoming);
  const counted = COUNTED.find(([at]) => at.test(route))?.[1];
  if (counted) return sendJson(response, 200, { [counted]: tokensIn(bytes.length) });
  if (/^\/v1(?:beta)?\/models$/.test(route)) return sendJson(response, 200, MODELS);
  if (route === '/' || route === '/v1') return void response.end();
  sendJson(response, 404, { type: 'error', error: { type: 'not_found_error', message: `nothing at ${route}` } });
}

/** Paths of requests to count tokens, and the name of the count in the answer. */
const COUNTED: readonly (readonly [RegExp, string])[] = [
  [/^\/v1\/messages\/count_tokens$/, 'input_tokens'],
  [/^\/v1(?:beta)?\/models\/[^/:]+:countTokens$/, 'totalTokens'],
];

/** The lists of all APIs in one: each client ignores the fields of the others. */
const MODELS = {
  object: 'list',
  data: [{ id: 'stand-in', type: 'model', object: 'model', display_name: 'Stand-in', created: 0, owned_by: 'tests' }],
  has_more: false,
  models: [{ name: 'models/stand-in', supportedGenerationMethods: ['generateContent', 'countTokens'] }],
};
