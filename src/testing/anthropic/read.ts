import { isJson, type Json, type ModelMessage, message, objects, type RequestBody, str } from '../request.ts';

/** The body of `POST /v1/messages`. */
export function readMessages(body: Json): RequestBody {
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
  const format = isJson(output_config) && isJson(output_config.format) ? output_config.format : output_format;
  return isJson(format) && isJson(format.schema) ? format.schema : null;
}
