import {
  isJson,
  type Json,
  type ModelMessage,
  message,
  objects,
  type RequestBody,
  str,
  type ToolResult,
} from '../request.ts';

/** Where it is spoken to: the model and whether to stream are in the path. Streams are server-sent events. */
export const GEMINI_PATH =
  /^\/v1(?:beta)?\/models\/([^/:?]+):(?:(generateContent)(?:\?|$)|streamGenerateContent\?(?:.*&)?alt=sse(?:&|$))/;

/** The body of `POST /v1beta/models/{model}:generateContent`, also streamed. */
export function readGemini(body: Json, path: string): RequestBody {
  const [, model = '', whole] = GEMINI_PATH.exec(path) ?? [];
  return {
    model,
    system: textsOf(partsOf(body.systemInstruction ?? body.system_instruction)).join('\n'),
    messages: objects(body.contents).map(readContent),
    tools: objects(body.tools).flatMap(namesOf),
    stream: whole === undefined,
    schema: schemaOf(body),
  };
}

function readContent(content: Json): ModelMessage {
  const parts = partsOf(content);
  return message(
    content.role === 'model' ? 'assistant' : 'user',
    textsOf(parts),
    parts.flatMap(({ functionCall: call }) =>
      isJson(call) ? { id: idOf(call), name: str(call.name), input: call.args ?? {} } : [],
    ),
    parts.flatMap(({ functionResponse: result }) => (isJson(result) ? resultOf(result) : [])),
  );
}

/** Calls and results may come without an id: then they belong together by their name. */
function idOf({ id, name }: Json): string {
  return str(id) || str(name);
}

/** A result is an object; most often its text is the only thing in it. */
function resultOf(result: Json): ToolResult {
  const response = isJson(result.response) ? result.response : {};
  const said = response.error ?? response.output ?? response.result ?? response;
  return {
    id: idOf(result),
    text: typeof said === 'string' ? said : JSON.stringify(said),
    isError: response.error !== undefined,
  };
}

/** A content has parts; instructions are also taken as a part or a string. */
function partsOf(content: unknown): Json[] {
  if (typeof content === 'string') return [{ text: content }];
  if (!isJson(content)) return [];
  return 'parts' in content ? objects(content.parts) : [content];
}

function textsOf(parts: readonly Json[]): string[] {
  return parts.flatMap(({ text, thought }) =>
    typeof text === 'string' && text !== '' && thought !== true ? text : [],
  );
}

/** Functions have names; tools that come with the model itself are known by their field. */
function namesOf(tool: Json): string[] {
  const functions = objects(tool.functionDeclarations ?? tool.function_declarations).map(({ name }) => str(name));
  return functions.length > 0 ? functions : Object.keys(tool);
}

function schemaOf({ generationConfig: config }: Json): Json | null {
  const schema = isJson(config) ? (config.responseJsonSchema ?? config.responseSchema) : null;
  return isJson(schema) ? schema : null;
}
