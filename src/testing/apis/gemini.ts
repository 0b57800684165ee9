import { isObject } from '../../core/turn/content.ts';
import { type Api, type Frame, type Reply, textOf } from '../api.ts';
import type { Failure } from '../plan.ts';
import { type Json, type ModelMessage, message, objects, type RequestBody, str, type ToolResult } from '../request.ts';

/** The model and whether to stream are in the path. Streams are server-sent events. */
const GEMINI_PATH =
  /^\/v1(?:beta)?\/models\/([^/:?]+):(?:(generateContent)(?:\?|$)|streamGenerateContent\?(?:.*&)?alt=sse(?:&|$))/;

/** Gemini generateContent, as Gemini CLI uses it. */
export const geminiGenerateContent: Api = {
  name: 'gemini',
  path: GEMINI_PATH,
  read: readGemini,
  whole: (reply) => response(reply, [...texts(reply), ...calls(reply)], true),
  frames,
  failure: (failure) => ({
    error: { code: failure.status, message: inItsWords(failure), status: STATUSES[failure.status] ?? 'UNKNOWN' },
  }),
  toolUseId: (id) => `call_${id}`,
};

function inItsWords({ message, tooLong }: Failure): string {
  if (!tooLong) return message;
  return `The input token count (${tooLong.tokens}) exceeds the maximum number of tokens allowed (${tooLong.window}).`;
}

const STATUSES: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
  529: 'UNAVAILABLE',
};

const texts = ({ chunks }: Reply): Json[] => (chunks.length > 0 ? [{ text: textOf(chunks) }] : []);

const calls = ({ toolUses }: Reply): Json[] =>
  toolUses.map(({ id, name, input }) => ({ functionCall: { id, name, args: input } }));

/** Whole answers and the pieces of streamed ones have the same form. The last piece has the reason for the end, and the usage. */
function response({ id, model, usage }: Reply, parts: readonly Json[], last: boolean): Json {
  const { inputTokens, outputTokens } = usage;
  const usageMetadata = {
    promptTokenCount: inputTokens,
    candidatesTokenCount: outputTokens,
    totalTokenCount: inputTokens + outputTokens,
  };
  const end = last ? { finishReason: 'STOP' } : {};
  return {
    candidates: [{ index: 0, content: { role: 'model', parts }, ...end }],
    ...(last ? { usageMetadata } : {}),
    modelVersion: model,
    responseId: id,
  };
}

function frames(reply: Reply): Frame[] {
  return [
    ...reply.chunks.map(({ text, waitMs }) => ({ data: response(reply, [{ text }], false), waitMs })),
    ...calls(reply).map((call) => ({ data: response(reply, [call], false) })),
    // The end is a frame of its own: an answer that breaks off must not contain it.
    { data: response(reply, [{ text: '' }], true) },
  ];
}

/** The body of `POST /v1beta/models/{model}:generateContent`, also streamed. */
function readGemini(body: Json, path: string): RequestBody {
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
      isObject(call) ? { id: idOf(call), name: str(call.name), input: call.args ?? {} } : [],
    ),
    parts.flatMap(({ functionResponse: result }) => (isObject(result) ? resultOf(result) : [])),
  );
}

/** Calls and results may come without an id: then they belong together by their name. */
function idOf({ id, name }: Json): string {
  return str(id) || str(name);
}

/** A result is an object, which mostly has only a text. */
function resultOf(result: Json): ToolResult {
  const response = isObject(result.response) ? result.response : {};
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
  if (!isObject(content)) return [];
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
  const schema = isObject(config) ? (config.responseJsonSchema ?? config.responseSchema) : null;
  return isObject(schema) ? schema : null;
}
