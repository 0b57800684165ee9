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

/** The body of `POST /v1/responses`: each item of the input is a message of its own. */
export function readResponses(body: Json): RequestBody {
  const input = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : objects(body.input);
  const messages = input.flatMap(readItem);
  const later = messages.filter(({ role }) => role === 'system').map(({ text }) => text);
  return {
    model: str(body.model),
    system: [str(body.instructions), ...later].filter(Boolean).join('\n'),
    messages,
    // Tools that come with the model itself have a type and no name.
    tools: objects(body.tools).map((tool) => str(tool.name) || str(tool.type)),
    stream: body.stream === true,
    schema: schemaOf(body),
  };
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
  return []; // reasoning and whatever else is no part of what was said
}

function roleOf(role: unknown): ModelMessage['role'] {
  if (role === 'assistant') return 'assistant';
  return role === 'system' || role === 'developer' ? 'system' : 'user';
}

const TEXTS = ['input_text', 'output_text', 'text'];

function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  return objects(content).flatMap(({ type, text }) => (TEXTS.includes(str(type)) ? str(text) : []));
}

/** A string, blocks, or in older versions an object with the string and whether it went well. */
function outputOf(output: unknown): { text: string; isError: boolean } {
  if (!isJson(output)) return { text: textsOf(output).join('\n'), isError: false };
  return { text: textsOf(output.content).join('\n'), isError: output.success === false };
}

function inputOf({ arguments: given, input, action }: Json): unknown {
  return typeof given === 'string' ? jsonOrText(given) : (input ?? action ?? null);
}

function schemaOf({ text }: Json): Json | null {
  const format = isJson(text) ? text.format : null;
  return isJson(format) && isJson(format.schema) ? format.schema : null;
}
