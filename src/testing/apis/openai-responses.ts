import { isObject } from '../../core/turn/content.ts';
import { type Api, type Frame, jsonOrText, type Reply, textOf } from '../api.ts';
import type { Failure } from '../plan.ts';
import { type Json, type ModelMessage, message, objects, type RequestBody, str, type ToolUse } from '../request.ts';
import { openaiError, roleOf } from './openai.ts';

/** OpenAI Responses, as Codex uses it. */
export const openaiResponses: Api = {
  name: 'openai-responses',
  path: /^\/v1\/responses(?:\?|$)/,
  read: readResponses,
  whole: (reply) => ({ ...response(reply), status: 'completed', output: output(reply), usage: usage(reply) }),
  frames: (reply) => numbered(frames(reply)),
  failure: (failure) => ({ error: openaiError(failure) }),
  failureFrames,
  toolUseId: (id) => `call_${id}`,
};

/** A request that is too long is accepted first, and then its stream fails. */
function failureFrames(failure: Failure, id: string): Frame[] | null {
  if (!failure.tooLong) return null;
  const { code, message } = openaiError(failure);
  const failed = { id: `resp_${id}`, object: 'response', status: 'failed', error: { code, message }, output: [] };
  return numbered([
    { event: 'response.created', data: { response: { ...failed, status: 'in_progress', error: null } } },
    { event: 'response.failed', data: { response: failed } },
  ]);
}

function response({ id, model }: Reply): Json {
  return { id: `resp_${id}`, object: 'response', created_at: 0, model, error: null, incomplete_details: null };
}

function usage({ usage: { inputTokens, outputTokens } }: Reply): Json {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}

const output = (reply: Reply): Json[] => [
  ...(reply.chunks.length > 0 ? [messageItem(reply, 'completed')] : []),
  ...reply.toolUses.map((use) => toolItem(use)),
];

function messageItem({ id, chunks }: Reply, status: string): Json {
  const content = status === 'completed' ? [textPart(textOf(chunks))] : [];
  return { type: 'message', id: `msg_${id}`, role: 'assistant', status, content };
}

const textPart = (text: string) => ({ type: 'output_text', text, annotations: [] });

/** A tool that takes plain text has another kind of call. */
function toolItem({ id, name, input }: ToolUse): Json {
  const item = { id: id.replace('call_', 'fc_'), call_id: id, name, status: 'completed' };
  if (typeof input === 'string') return { type: 'custom_tool_call', ...item, input };
  return { type: 'function_call', ...item, arguments: JSON.stringify(input) };
}

function frames(reply: Reply): Frame[] {
  const started = { ...response(reply), status: 'in_progress', output: [] };
  const items = [
    ...(reply.chunks.length > 0 ? [messageFrames(reply)] : []),
    ...reply.toolUses.map((use) => toolFrames(toolItem(use))),
  ];
  return [
    { event: 'response.created', data: { response: started } },
    { event: 'response.in_progress', data: { response: started } },
    ...items.flatMap((item, output_index) => item.map((one) => ({ ...one, data: { ...one.data, output_index } }))),
    { event: 'response.completed', data: { response: openaiResponses.whole(reply) } },
  ];
}

function messageFrames(reply: Reply): Frame[] {
  const text = textOf(reply.chunks);
  const at = { item_id: `msg_${reply.id}`, content_index: 0 };
  return [
    { event: 'response.output_item.added', data: { item: messageItem(reply, 'in_progress') } },
    { event: 'response.content_part.added', data: { ...at, part: textPart('') } },
    ...reply.chunks.map((chunk) => ({
      event: 'response.output_text.delta',
      data: { ...at, delta: chunk.text },
      waitMs: chunk.waitMs,
    })),
    { event: 'response.output_text.done', data: { ...at, text } },
    { event: 'response.content_part.done', data: { ...at, part: textPart(text) } },
    { event: 'response.output_item.done', data: { item: messageItem(reply, 'completed') } },
  ];
}

function toolFrames(item: Json): Frame[] {
  const [kind, key] =
    item.type === 'function_call' ? ['function_call_arguments', 'arguments'] : ['custom_tool_call_input', 'input'];
  const value = item[key ?? ''];
  return [
    { event: 'response.output_item.added', data: { item: { ...item, status: 'in_progress', [key ?? '']: '' } } },
    { event: `response.${kind}.delta`, data: { item_id: item.id, delta: value } },
    { event: `response.${kind}.done`, data: { item_id: item.id, [key ?? '']: value } },
    { event: 'response.output_item.done', data: { item } },
  ];
}

function numbered(list: readonly Frame[]): Frame[] {
  return list.map((one, sequence_number) => ({ ...one, data: { type: one.event, sequence_number, ...one.data } }));
}

/** The body of `POST /v1/responses`: each item of the input is a message of its own. */
function readResponses(body: Json): RequestBody {
  const input = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : objects(body.input);
  const messages = input.flatMap(readItem);
  const later = messages.filter(({ role }) => role === 'system').map(({ text }) => text);
  return {
    model: str(body.model),
    system: [str(body.instructions), ...later].filter(Boolean).join('\n'),
    messages,
    tools: [body, ...input.filter(({ type }) => type === 'additional_tools')].flatMap(({ tools }) => toolNames(tools)),
    stream: body.stream === true,
    schema: schemaOf(body),
  };
}

/** Tools that come with the model itself have a type and no name. Some tools are in named groups. */
function toolNames(tools: unknown): string[] {
  return objects(tools).flatMap((tool) =>
    tool.type === 'namespace' ? toolNames(tool.tools) : [str(tool.name) || str(tool.type)],
  );
}

function readItem(item: Json): ModelMessage[] {
  const type = str(item.type) || 'message';
  if (type === 'message') return [message(roleOf(item.role), textsOf(item.content))];
  if (type.endsWith('_call_output')) {
    const { text, isError } = outputOf(item.output);
    return [message('user', [], [], [{ id: str(item.call_id), text, isError }])];
  }
  if (type.endsWith('_call')) {
    const use = { id: str(item.call_id), name: str(item.name) || type, input: inputOf(item) };
    return [message('assistant', [], [use])];
  }
  return []; // reasoning, for example, is not part of the conversation
}

const TEXTS = ['input_text', 'output_text', 'text'];

function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return objects(content).flatMap(({ type, text }) => (TEXTS.includes(str(type)) ? str(text) : []));
}

/** A string, blocks, or in older versions an object with the string and whether the tool succeeded. */
function outputOf(output: unknown): { text: string; isError: boolean } {
  if (!isObject(output)) return { text: textsOf(output).join('\n'), isError: false };
  return { text: textsOf(output.content).join('\n'), isError: output.success === false };
}

function inputOf({ arguments: given, input, action }: Json): unknown {
  return typeof given === 'string' ? jsonOrText(given) : (input ?? action ?? null);
}

function schemaOf({ text }: Json): Json | null {
  const format = isObject(text) ? text.format : null;
  return isObject(format) && isObject(format.schema) ? format.schema : null;
}
