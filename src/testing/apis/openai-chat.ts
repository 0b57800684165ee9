import { isObject } from '../../core/turn/content.ts';
import { type Api, type Frame, jsonOrText, type Reply, textOf } from '../api.ts';
import type { Failure } from '../plan.ts';
import { type Json, type ModelMessage, message, objects, type RequestBody, str, type ToolUse } from '../request.ts';
import { openaiError, roleOf } from './openai.ts';

/** OpenAI Chat Completions, as most other agents use it. */
export const openaiChat: Api = {
  name: 'openai-chat',
  path: /^\/v1\/chat\/completions(?:\?|$)/,
  read: readChat,
  whole,
  frames,
  streamEnd: 'data: [DONE]\n\n',
  failure: (failure) => ({ error: openaiError({ ...failure, message: inItsWords(failure) }) }),
  toolUseId: (id) => `call_${id}`,
};

function inItsWords({ message, tooLong }: Failure): string {
  if (!tooLong) return message;
  return `This model's maximum context length is ${tooLong.window} tokens. However, your messages resulted in ${tooLong.tokens} tokens.`;
}

function whole(reply: Reply): Json {
  const { chunks, toolUses } = reply;
  const content = chunks.length > 0 ? textOf(chunks) : null;
  const calls = toolUses.length > 0 ? { tool_calls: toolUses.map(toolCall) } : {};
  const message = { role: 'assistant', content, refusal: null, ...calls };
  return {
    ...head(reply, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(reply) }],
    usage: usage(reply),
  };
}

function head({ id, model }: Reply, object: string): Json {
  return { id: `chatcmpl-${id}`, object, created: 0, model };
}

const finishReason = ({ toolUses }: Reply) => (toolUses.length > 0 ? 'tool_calls' : 'stop');

function toolCall({ id, name, input }: ToolUse): Json {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

function usage({ usage: { inputTokens, outputTokens } }: Reply): Json {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

/** The usage comes in a chunk of its own, and only if the request asks for it. */
function frames(reply: Reply, { stream_options }: Json): Frame[] {
  const counted = isObject(stream_options) && stream_options.include_usage === true;
  const chunk = (choices: Json[], used: Json | null = null): Json => ({
    ...head(reply, 'chat.completion.chunk'),
    choices,
    ...(counted ? { usage: used } : {}),
  });
  const delta = (delta: Json, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }]);
  return [
    { data: delta({ role: 'assistant', content: '' }) },
    ...reply.chunks.map(({ text, waitMs }) => ({ data: delta({ content: text }), waitMs })),
    ...reply.toolUses.flatMap((use, index) => toolDeltas(use, index).map((tool) => ({ data: delta(tool) }))),
    { data: delta({}, finishReason(reply)) },
    ...(counted ? [{ data: chunk([], usage(reply)) }] : []),
  ];
}

/** The name first, the arguments after it. */
function toolDeltas({ id, name, input }: ToolUse, index: number): Json[] {
  return [
    { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
    { tool_calls: [{ index, function: { arguments: JSON.stringify(input) } }] },
  ];
}

/** The body of `POST /v1/chat/completions`. */
function readChat(body: Json): RequestBody {
  const messages = objects(body.messages).map(readMessage);
  return {
    model: str(body.model),
    system: messages.flatMap(({ role, text }) => (role === 'system' ? text : [])).join('\n'),
    messages,
    tools: objects(body.tools).map((tool) => str(functionOf(tool).name)),
    stream: body.stream === true,
    schema: schemaOf(body),
  };
}

function readMessage({ role, content, tool_calls, tool_call_id }: Json): ModelMessage {
  const texts = textsOf(content);
  // This API does not mark results that are errors; only their text shows it.
  if (role === 'tool') {
    return message('user', [], [], [{ id: str(tool_call_id), text: texts.join('\n'), isError: false }]);
  }
  const uses = objects(tool_calls).map((call) => {
    const { name, arguments: given } = functionOf(call);
    return { id: str(call.id), name: str(name), input: jsonOrText(str(given)) };
  });
  return message(roleOf(role), texts, uses);
}

/** Content is a string, parts of which some are text, or null beside tool calls. */
function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return content === '' ? [] : [content];
  return objects(content).flatMap(({ type, text }) => (type === 'text' ? str(text) : []));
}

function functionOf(holder: Json): Json {
  return isObject(holder.function) ? holder.function : {};
}

function schemaOf({ response_format }: Json): Json | null {
  const format = isObject(response_format) ? response_format.json_schema : null;
  return isObject(format) && isObject(format.schema) ? format.schema : null;
}
