import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { isObject } from '../core/turn/content.ts';
import { type Api, type Reply, textOf } from './api.ts';
import { cutOff, firstHalf, pause, sendFrames, sendHalf, sendJson } from './connection.ts';
import { type Count, type Plan, planFor, tooLong } from './plan.ts';
import type { Json, ModelAnswer, ModelRequest, ModelUsage, RequestBody } from './request.ts';

export interface AnswerContext {
  readonly window: number;
  readonly count: Count;
  /** Every request that is kept, also those that are not answered yet. */
  readonly requests: ModelRequest[];
  readonly served: { answers: number; inputTokens: number; outputTokens: number };
}

export interface Asked {
  readonly api: Api;
  readonly path: string;
  readonly raw: Json;
  readonly inputTokens: number;
}

/** Records the request, answers it, and records the answer. */
export async function answerRequest(asked: Asked, response: ServerResponse, context: AnswerContext): Promise<void> {
  const { api, path, raw, inputTokens } = asked;
  const body = api.read(raw, path);
  const side = isSideCall({ ...body, raw });
  const n = (context.requests.at(-1)?.n ?? 0) + 1;
  const request = { n, at: Date.now(), path, api: api.name, ...body, side, raw, answer: null as ModelAnswer | null };
  context.requests.push(request);

  const tooMuch = inputTokens > context.window ? tooLong(inputTokens, context.window) : null;
  const asIs = planFor(request, context.count);
  const plan = { ...asIs, failure: tooMuch ?? asIs.failure };
  const reply = replyFor(plan, request, asked);
  const said = { text: textOf(plan.chunks), toolUses: reply.toolUses, broken: false };
  const gone = goneSignal(response);
  try {
    await pause(plan.waitMs, gone);
    if (plan.failure) {
      request.answer = { ...said, status: plan.failure.status, text: plan.failure.message, toolUses: [], usage: null };
      const frames = request.stream ? api.failureFrames?.(plan.failure, reply.id) : null;
      if (frames) await sendFrames(response, frames, gone);
      if (frames) response.end();
      else sendJson(response, plan.failure.status, api.failure(plan.failure));
    } else if (plan.breakOff) {
      request.answer = { ...said, status: 200, usage: null, broken: true };
      if (request.stream) await sendFrames(response, firstHalf(api.frames(reply, raw)), gone);
      if (request.stream) cutOff(response);
      else sendHalf(response, api.whole(reply));
    } else {
      if (request.stream) await sendFrames(response, api.frames(reply, raw), gone);
      // Before the end is sent, so that a caller that has read it finds the usage counted.
      request.answer = { ...said, status: 200, usage: reply.usage };
      count(context.served, reply.usage);
      if (request.stream) response.end(api.streamEnd);
      else sendJson(response, 200, api.whole(reply));
    }
  } catch {
    // The caller disconnected while we waited.
    request.answer = { ...said, status: 200, usage: null, broken: true };
  }
}

function count(served: AnswerContext['served'], { inputTokens, outputTokens }: ModelUsage): void {
  served.answers += 1;
  served.inputTokens += inputTokens;
  served.outputTokens += outputTokens;
}

function replyFor({ chunks, tool }: Plan, { model }: ModelRequest, { api, inputTokens }: Asked): Reply {
  const id = randomUUID().replaceAll('-', '');
  const toolUses = tool === null ? [] : [{ id: api.toolUseId(id), ...tool }];
  const output = textOf(chunks) + toolUses.map(({ name, input }) => name + JSON.stringify(input)).join('');
  return { id, model, chunks, toolUses, usage: { inputTokens, outputTokens: tokensIn(Buffer.byteLength(output)) } };
}

/** Aborted when the connection ends, by the caller or by us. */
function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  return controller.signal;
}

/**
 * Side calls for titles, topics and probes: small requests without tools, to a small model, with instructions of their own, or with a
 * schema for the answer (Gemini CLI lets the model rate the difficulty of each prompt in this way).
 */
function isSideCall({ tools, model, system, schema, raw }: Omit<RequestBody, 'messages'> & { readonly raw: Json }) {
  // Codex asks for titles with all its tools.
  if (schema !== null && isTitle(schema)) return true;
  if (tools.length > 0) return false;
  return schema !== null || /haiku/i.test(model) || isProbe(raw) || (system.length < LONG && SIDE_CALL.test(system));
}

function isTitle({ properties }: Json): boolean {
  return isObject(properties) && Object.keys(properties).join() === 'title';
}

/** Claude 2.1 asks for a title with "You are naming a coding session …". */
const SIDE_CALL =
  /\bnaming a\b[^.\n]{0,20}\bsession\b|\b(?:generate|write|create|extract|analy[sz]e)\b[^.\n]{0,80}\b(?:title|topic|name|kebab-case)\b/i;
/** The instructions of a conversation may mention titles, too. They are longer than those of a side call. */
const LONG = 8_000;

/** A request for one token only checks that the server answers. */
function isProbe({ max_tokens, max_output_tokens, max_completion_tokens, generationConfig }: Json): boolean {
  const gemini = isObject(generationConfig) ? generationConfig.maxOutputTokens : undefined;
  return [max_tokens, max_output_tokens, max_completion_tokens, gemini].includes(1);
}

/** A plausible count, the same for the same text, so that sums can be compared. */
export function tokensIn(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / 4));
}
