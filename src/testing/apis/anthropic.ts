import { isObject } from '../../core/turn/content.ts';
import { type Api, type Frame, type Reply, textOf } from '../api.ts';
import { type Json, type ModelMessage, type ModelUsage, message, objects, type RequestBody, str } from '../request.ts';

/** Anthropic Messages, as Claude uses it. */
export const anthropicMessages: Api = {
  name: 'anthropic',
  path: /^\/v1\/messages(?:\?|$)/,
  read: readMessages,
  whole: (reply) => ({ ...head(reply), content: content(reply), stop_reason: stopReason(reply), usage: usage(reply) }),
  frames,
  failure: ({ status, message }) => ({ type: 'error', error: { type: ERRORS[status] ?? 'api_error', message } }),
  toolUseId: (id) => `toolu_${id}`,
};

const ERRORS: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

function head({ id, model }: Reply): Json {
  return { id: `msg_${id}`, type: 'message', role: 'assistant', model, stop_sequence: null };
}

function content({ chunks, toolUses }: Reply): Json[] {
  const text = chunks.length > 0 ? [{ type: 'text', text: textOf(chunks) }] : [];
  return [...text, ...toolUses.map((use) => ({ type: 'tool_use', ...use }))];
}

const stopReason = ({ toolUses }: Reply) => (toolUses.length > 0 ? 'tool_use' : 'end_turn');

function usage({ usage }: { readonly usage: ModelUsage }): Json {
  return {
    input_tokens: usage.inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: usage.outputTokens,
  };
}

function frames(reply: Reply): Frame[] {
  const start = { ...reply.usage, outputTokens: 1 };
  const message = { ...head(reply), content: [], stop_reason: null, usage: usage({ usage: start }) };
  const text = reply.chunks.length > 0 ? [textBlock(reply)] : [];
  const blocks = [...text, ...reply.toolUses.map(toolBlock)];
  const delta = { stop_reason: stopReason(reply), stop_sequence: null };
  return [
    frame('message_start', { message }),
    ...blocks.flatMap((block, index) => block.map((one) => ({ ...one, data: { ...one.data, index } }))),
    frame('message_delta', { delta, usage: usage(reply) }),
    frame('message_stop', {}),
  ];
}

function textBlock({ chunks }: Reply): Frame[] {
  return [
    frame('content_block_start', { content_block: { type: 'text', text: '' } }),
    ...chunks.map(({ text, waitMs }) => ({
      ...frame('content_block_delta', { delta: { type: 'text_delta', text } }),
      waitMs,
    })),
    frame('content_block_stop', {}),
  ];
}

function toolBlock({ id, name, input }: Reply['toolUses'][number]): Frame[] {
  const partial_json = JSON.stringify(input);
  return [
    frame('content_block_start', { content_block: { type: 'tool_use', id, name, input: {} } }),
    frame('content_block_delta', { delta: { type: 'input_json_delta', partial_json } }),
    frame('content_block_stop', {}),
  ];
}

function frame(event: string, data: Json): Frame {
  return { event, data: { type: event, ...data } };
}

/** The body of `POST /v1/messages`. */
function readMessages(body: Json): RequestBody {
  const messages = objects(body.messages).map(readMessage);
  const later = messages.filter(({ role }) => role === 'system').map(({ text }) => text);
  return {
    model: str(body.model),
    system: [...textsOf(body.system), ...later].join('\n'),
    messages,
    tools: objects(body.tools).map((tool) => str(tool.name)),
    stream: body.stream === true,
    schema: schemaOf(body),
  };
}

function readMessage({ role, content }: Json): ModelMessage {
  const blocks = objects(content);
  return message(
    role === 'assistant' || role === 'system' ? role : 'user',
    textsOf(content),
    blocks.flatMap(({ type, id, name, input }) =>
      type === 'tool_use' ? { id: str(id), name: str(name), input: input ?? null } : [],
    ),
    blocks.flatMap(({ type, tool_use_id, content, is_error }) =>
      type === 'tool_result'
        ? { id: str(tool_use_id), text: textsOf(content).join('\n'), isError: is_error === true }
        : [],
    ),
  );
}

/** Content is a string, or blocks of which some are text. */
function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return objects(content).flatMap(({ type, text }) => (type === 'text' ? str(text) : []));
}

function schemaOf({ output_config, output_format }: Json): Json | null {
  const format = isObject(output_config) && isObject(output_config.format) ? output_config.format : output_format;
  return isObject(format) && isObject(format.schema) ? format.schema : null;
}
