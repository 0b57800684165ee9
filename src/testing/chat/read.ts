import {
  isJson,
  type Json,
  jsonOrText,
  type ModelMessage,
  message,
  objects,
  type RequestBody,
  str,
} from '../request.ts';

/** The body of `POST /v1/chat/completions`. */
export function readChat(body: Json): RequestBody {
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
  // A result is not marked as an error here: whether it is one, only its text says.
  if (role === 'tool') {
    return message('user', [], [], [{ id: str(tool_call_id), text: texts.join('\n'), isError: false }]);
  }
  const uses = objects(tool_calls).map((call) => {
    const { name, arguments: given } = functionOf(call);
    return { id: str(call.id), name: str(name), input: jsonOrText(str(given)) };
  });
  return message(roleOf(role), texts, uses);
}

function roleOf(role: unknown): ModelMessage['role'] {
  if (role === 'assistant') return 'assistant';
  return role === 'system' || role === 'developer' ? 'system' : 'user';
}

/** Content is a string, parts of which some are text, or null beside tool calls. */
function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return content === '' ? [] : [content];
  return objects(content).flatMap(({ type, text }) => (type === 'text' ? str(text) : []));
}

function functionOf(holder: Json): Json {
  return isJson(holder.function) ? holder.function : {};
}

function schemaOf({ response_format }: Json): Json | null {
  const format = isJson(response_format) ? response_format.json_schema : null;
  return isJson(format) && isJson(format.schema) ? format.schema : null;
}
